"""The running thing: its states, the steps of each operation, and the protocol its engines speak."""
