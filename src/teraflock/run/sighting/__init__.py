"""What runs saw of spot places: when machines could be had, and when not."""
