"""Credits: granted for a reason and a period, and used before any other payment."""
