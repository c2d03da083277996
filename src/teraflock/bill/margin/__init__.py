"""What hosts cost us, whom that cost serves, and what is left of revenue. No tenant sees any of it."""
