"""Public addresses: taken from the operator's pool, and attached to an instance or a balancer."""
