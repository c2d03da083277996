"""Plans: the offers that can finish a job, ranked by cost, with a reason for each offer that cannot.

`rules.py` chooses and is pure. `cost.py` computes the cost of a job on one offer. `owned.py` prices own hosts.
`check.py` shares no code with them and checks every plan, in production too. `data/assumptions.toml` has the dated
assumptions for what is unknown.
"""
