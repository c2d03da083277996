"""API keys: with which members ask."""
