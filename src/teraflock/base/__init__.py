"""Values that all other folders share: ids, money, quantities, the clock, errors, events.

Nothing here depends on GPUs, tenants or databases. The only I/O is `clock.SystemClock` and reading the exchange
rates that ship with the package. Imports only the standard library and msgspec.
"""
