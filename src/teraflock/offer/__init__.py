"""Offers: the machines that providers offer, with price, date and source.

An offer is a provider's shape in one region and one purchase mode. Its price is stored as quoted and, normalised, as an
exact integer per month for the whole machine. `importers/` read files, `intake.py` checks each row, `source/` stores
the offers, `question/` searches them, and `shape/` groups them for plans. CLI and API call `service.py`. `index/`
searches in memory, for servers.
"""
