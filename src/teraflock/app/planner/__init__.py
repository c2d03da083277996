"""The planner in a server: the operator's offers, rates and cards, and processes that compute estimates and plans."""
