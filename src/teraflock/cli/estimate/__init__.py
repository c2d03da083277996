"""`tera estimate`: memory and time of a training step on every GPU."""
