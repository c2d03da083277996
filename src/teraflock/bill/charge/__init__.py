"""Charges: what each stretch of an interval costs, booked once, taken back by a reversal where it was too much."""
