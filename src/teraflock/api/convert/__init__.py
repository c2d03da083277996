"""Converters between domain values and wire structs: plain functions, one file per noun. Here are those
that several nouns or the background work use; the others are in the files of their routes."""
