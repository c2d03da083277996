"""Instances of all projects together, for operators and loops."""
