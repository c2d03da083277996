"""Teraflock: a GPU cloud you own.

The folders follow the way of the data: workload → estimate → offers → plan → instance → meter → bill.
`ARCHITECTURE.md` says what each of them owns and which may import which.
"""

__version__ = "0.1.0"
