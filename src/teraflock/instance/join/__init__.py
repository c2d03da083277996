"""Hosts that join an installation: invitations, the request of a new host, and its removal."""
