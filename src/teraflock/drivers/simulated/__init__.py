"""A simulated engine: hosts, cards and guests exist only in a file or in memory.

It is for demonstrations, for fault tests, and for tests at the size of a data centre. Everything is marked as
simulated: the names of hosts, the driver's `simulated`, and the output of guests' programs. It is as strict
as the strictest real engine: it refuses what another engine may accept by mistake, such as a card in two
guests or a duplicate address.

`engine.py` has the calls, `model.py` and `world.py` the state, `faults.py` and `trouble.py` the failures.
"""
