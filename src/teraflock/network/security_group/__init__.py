"""Security groups: stateful rules that say what may reach an instance and what it may reach."""
