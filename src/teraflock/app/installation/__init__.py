"""The installation on this machine: set up, start, stop, check, back up and remove. Every action can be repeated."""
