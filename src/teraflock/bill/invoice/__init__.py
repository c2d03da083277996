"""Invoices: what a project owes for a month, numbered without a gap, as a document one can send."""
