"""Announcements: messages from operators to tenants."""
