"""Snapshots of an instance's disk."""
