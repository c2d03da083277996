"""`tera plan`: the cheapest way to finish a job, and whether to buy or rent."""
