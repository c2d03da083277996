"""Hosts that are rented for one instance and given back with it."""
