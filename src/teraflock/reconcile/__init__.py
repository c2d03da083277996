"""The server's loops: one module per loop, each load → decide → apply."""
