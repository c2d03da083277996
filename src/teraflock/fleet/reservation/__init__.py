"""Hosts that are kept free for the queued launch that is next."""
