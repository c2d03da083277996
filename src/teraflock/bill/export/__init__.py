"""The bill for other programs: FinOps FOCUS."""
