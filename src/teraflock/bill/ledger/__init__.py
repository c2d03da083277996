"""The ledger: double-entry bookkeeping. Entries are added and never changed."""
