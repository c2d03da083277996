"""Counters of the bytes that guests sent to the internet, as they were read."""
