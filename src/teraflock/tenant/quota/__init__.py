"""Quotas: the most that a project or an organisation may hold at a time."""
