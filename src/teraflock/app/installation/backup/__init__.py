"""Backups of an installation: created, shown and restored."""
