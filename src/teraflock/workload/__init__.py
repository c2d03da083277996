"""What is asked: a model or a traced script, its batch, precision and optimizer; the zoo and its traces."""
