"""What every instance held, from when until when: append-only intervals made from events, never from polling."""
