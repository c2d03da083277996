"""Hosts and their cards, what is free on them, and which host an instance gets."""
