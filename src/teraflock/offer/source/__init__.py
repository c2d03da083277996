"""Sources of offers. Each import replaces all offers of one source."""
