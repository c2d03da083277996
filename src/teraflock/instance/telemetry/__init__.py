"""Readings for operators and tenants."""
