"""Leases: which worker of the server works on an instance."""
