"""Load balancers: one address of a project that spreads connections over several instances."""
