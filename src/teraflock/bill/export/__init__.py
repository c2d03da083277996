"""Exports the bill for other programs, in the FinOps FOCUS format."""
