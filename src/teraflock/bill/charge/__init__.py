"""Charges: the amount for each part of an interval. A charge is booked once; reversals correct it."""
