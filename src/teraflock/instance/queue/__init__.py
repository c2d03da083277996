"""Queued launches: they wait for room instead of failing."""
