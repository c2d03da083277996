"""Converters between domain values and wire structs: plain functions, one file per noun."""
