"""Peerings: two networks whose packets cross, because the owners of both agreed."""
