"""What to compute: a model or a traced script with batch, precision and optimizer; the zoo and its traces."""
