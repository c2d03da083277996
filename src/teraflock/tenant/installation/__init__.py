"""The installation: created once, at the first start, with its first organisation and operator."""
