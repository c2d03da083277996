"""Programs that run other tools on our data, each in its own environment."""
