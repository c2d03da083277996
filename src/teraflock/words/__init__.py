"""API values as text for people, in the terminal and in the console. Pure: `now` is passed in."""
