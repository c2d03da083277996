"""What is asked of the offers: filters, an order, and what to say where they leave nothing."""
