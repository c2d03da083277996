"""The places of offers: which regions and zones each source has."""
