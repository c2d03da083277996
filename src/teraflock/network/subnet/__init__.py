"""Subnets: parts of a network."""
