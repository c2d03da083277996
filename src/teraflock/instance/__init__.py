"""Instances: their states, the steps of every operation, and the protocol for drivers."""
