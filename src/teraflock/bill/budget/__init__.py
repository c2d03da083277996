"""Budgets: what a project may spend in a month, told at levels, and stopped at the end after notice."""
