"""Invoices: what a project owes for a month, as a document. Numbers have no gaps."""
