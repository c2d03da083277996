"""Organisations: each with members and projects of its own, which no other sees."""
