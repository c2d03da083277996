"""The cards of hosts, and the instances that hold them."""
