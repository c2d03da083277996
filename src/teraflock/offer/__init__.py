"""Offers: what can be had, at what price, since when, and who says so.

An offer is one way to hold a machine: a provider's shape in a region, in one purchase mode. Its price is kept
as it was quoted and, once normalised, as an exact integer per month for the whole machine. Files come in through
`importers/`, `rules.py` judges each row, `source/` keeps them, `question/` finds them, `shape/` sums them up for plans;
`service.py` is what the edges call, and `index/` answers the same questions from memory for a process that lives
longer than one command.
"""
