"""Where offers come from: one name, replaced as a whole by each import."""
