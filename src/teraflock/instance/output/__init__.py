"""The stored logs of commands."""
