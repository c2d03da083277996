"""Lessons that members passed, and their certificates."""
