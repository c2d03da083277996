"""Prices, charges, the ledger, invoices, budgets, costs and margin, and the verification of them all."""
