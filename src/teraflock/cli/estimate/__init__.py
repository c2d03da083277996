"""`tera estimate`: estimate the memory and time of a step on every GPU model."""
