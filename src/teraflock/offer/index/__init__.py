"""All offers in memory, for a server. Answers the queries of `tera offers` in under a millisecond.

A million offers combine a few thousand distinct shapes, places, terms, dates and notes. `model.py` stores each of them
once. In `columns.py`, a row is five small numbers, an id and two prices, sorted by price. `service.py` evaluates
filters on the distinct values and looks up the result for each row. `warm.py` keeps the index up to date.
"""
