"""`tera price`, `quote`, `bill`, `invoice`, `budget`, `credits`, `billing`, `buy`: what things cost and who pays."""
