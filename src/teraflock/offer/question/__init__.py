"""Search stored offers: filters, order, and the reason for an empty result."""
