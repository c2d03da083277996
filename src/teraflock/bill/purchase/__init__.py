"""Purchases: months and reservations that are paid ahead, what they cover and cost, how they renew and end."""
