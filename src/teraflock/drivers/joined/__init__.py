"""Drives the engine of another machine: a host that joined this installation.

The host runs `tera host serve`, which opens the driver of its own engine and serves the driver protocol over mutual
TLS. `driver.py` is the same protocol on the server: it sends each call to the host.

    server: driver.py → calling.py ── TLS ──► host: serving.py → the engine's own driver
    both:   methods.py (the table of calls), frames.py (messages and errors), channel.py (the connection)
"""
