"""Words that all parts share: ids, money, quantities, the clock, errors, events.

Nothing here knows of a GPU, a tenant or a database, and nothing here does I/O but `clock.SystemClock`
and the reading of the shipped exchange rates. Only the standard library and msgspec are imported.
"""
