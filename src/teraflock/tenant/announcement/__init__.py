"""Announcements: what operators tell tenants."""
