"""Budgets: what a project may spend in a month. Reports levels, and stops instances at the end, after a notice."""
