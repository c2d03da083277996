"""`tera plan`: find the cheapest offers for a job, and compare buying with renting."""
