"""What own hardware there is: hosts and their cards, what is free on them, and who is placed where."""
