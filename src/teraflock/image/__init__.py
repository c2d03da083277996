"""What an instance boots: recipes, images built from them, images made from an instance."""
