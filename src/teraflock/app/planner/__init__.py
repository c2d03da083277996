"""The planner in a server: the operator's offers, rates and cards, and the processes that estimate and plan."""
