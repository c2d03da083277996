"""Tenants: organisations, projects, members and their roles, API keys, quotas, the audit log."""
