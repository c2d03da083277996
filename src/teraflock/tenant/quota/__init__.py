"""Quotas: the most a project or an organisation may have at a time."""
