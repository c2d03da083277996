"""The cloud on this machine: set up, started, stopped, checked and removed, each safe to repeat or to cut off."""
