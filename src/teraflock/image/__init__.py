"""Images: recipes, images built from recipes, and images made from an instance."""
