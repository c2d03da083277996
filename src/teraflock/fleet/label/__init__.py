"""Labels of hosts, which launches can ask for."""
