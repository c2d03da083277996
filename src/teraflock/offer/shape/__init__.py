"""Offers alike in all that decides time and terms, as one: a hundred thousand are two thousand."""
