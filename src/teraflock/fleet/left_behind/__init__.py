"""Copies of instances that a lost host may still run."""
