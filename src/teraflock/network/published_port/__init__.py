"""Published ports: ports of a host that lead to ports of an instance."""
