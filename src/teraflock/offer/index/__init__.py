"""All offers in memory, for a server: the questions of `tera offers` in under a millisecond.

A million offers are a few thousand shapes, places, terms, dates and remarks, combined (`model.py`): each of these is
kept once, and a row is five small numbers, an id and two prices (`columns.py`). A filter is decided on the few distinct
values and then looked up for the rows, which lie in the order of price (`service.py`). `warm.py` keeps the index in
step with the database.
"""
