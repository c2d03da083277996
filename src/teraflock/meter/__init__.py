"""What each instance held and sent: append-only intervals and readings, computed from events."""
