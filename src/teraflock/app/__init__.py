"""Settings and wiring: the places of files, and the parts that make up a command or a server."""
