"""Sign-in to the console: passwords, one-time links, sessions."""
