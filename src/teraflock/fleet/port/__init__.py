"""Ports of hosts that lead to ports of guests."""
