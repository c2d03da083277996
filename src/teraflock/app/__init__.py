"""Settings and wiring: where the data lies, and which parts are put together for a command or a server."""
