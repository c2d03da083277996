"""Months and years that are bought: what they cover, what they cost, how they go on and how they end."""
