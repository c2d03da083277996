"""The routes, a file per noun. A new file is named in all.py; nothing is found by itself."""
