"""The routes, one file per noun. Add a new file to all.py: routes are not discovered."""
