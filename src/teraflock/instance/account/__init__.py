"""Accounts at public clouds: credentials, limits, and the projects that may use them."""
