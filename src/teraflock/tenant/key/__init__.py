"""API keys of members."""
