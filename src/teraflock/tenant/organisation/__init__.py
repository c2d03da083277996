"""Organisations: each has its own members and projects, which no other organisation sees."""
