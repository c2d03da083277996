"""Verifies the books: computes everything again from the events and compares it row by row.

It shares only the price book with meter/ and the biller: no rule, no store, no value. So a mistake goes unnoticed only
if both independent implementations have it.
"""
