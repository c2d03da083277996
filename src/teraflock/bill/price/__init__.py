"""The price book: read from YAML, kept by version, asked by time."""
