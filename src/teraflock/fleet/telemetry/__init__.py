"""Readings of cards and instances over time."""
