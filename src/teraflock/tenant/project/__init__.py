"""Projects: where instances, images and networks belong, and how much they may be."""
