"""Members of organisations, and the roles they have there."""
