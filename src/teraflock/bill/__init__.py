"""Prices, charges, the ledger, and the bill that can be proved: what was held, times what it cost then."""
