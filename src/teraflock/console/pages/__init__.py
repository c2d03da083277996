"""The pages, one module for each noun."""
