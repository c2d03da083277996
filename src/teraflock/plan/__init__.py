"""Plans: which offer finishes a job, at what cost, in what order, and why not the others.

`rules.py` chooses, from values alone; `cost.py` works out what finishing costs on one offer; `owned.py` prices own
servers; `check.py`, written apart from them, proves of every plan that it keeps its promises, in production too. What
is assumed and not known stands in `data/assumptions.toml`, with its date.
"""
