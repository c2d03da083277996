"""The JSON structures of the API and of `--json`. They are separate from domain values, even where they look alike.

A published field keeps its name and meaning. New fields may be added.
"""
