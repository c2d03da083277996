"""Backups of an installation: create, show and restore them."""
