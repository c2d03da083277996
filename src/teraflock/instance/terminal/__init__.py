"""Terminals: interactive shells in instances, for the console."""
