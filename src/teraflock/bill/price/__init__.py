"""The price book: read from YAML, stored by version, looked up by time."""
