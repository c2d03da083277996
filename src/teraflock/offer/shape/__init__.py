"""Group offers that differ only in place and price: a hundred thousand offers have about two thousand shapes."""
