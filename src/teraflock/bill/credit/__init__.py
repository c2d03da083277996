"""Credits: given for a reason, for a time, and drawn before anything else is."""
