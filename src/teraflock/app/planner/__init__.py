"""The planner of a server: the operator's offers, rates and GPU models, and the processes that estimate and plan."""
