"""What guests sent out of the house: counters, as they were read."""
