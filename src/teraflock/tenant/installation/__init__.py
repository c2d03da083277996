"""The house itself: made once, at the first start, with its first organisation and operator."""
