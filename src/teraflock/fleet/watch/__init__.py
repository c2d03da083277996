"""When the hosts of each site were watched."""
