"""Decides whether the report of a host can be true. Pure.

A report that cannot be stored, or that nobody could place an instance by, is treated like no report: the host is away
until it reports something else. It affects no other host of its site.
"""

from typing import Final

from teraflock.fleet.model import HostReport

VCPUS_MAX: Final = 1 << 20
BYTES_MAX: Final = 1 << 60
"""More than any host has, and sums of them over all hosts of an installation still fit a column."""


def fault_of(report: HostReport) -> str:
    """What is impossible about a report. Empty: nothing."""
    if not 0 <= report.vcpus <= VCPUS_MAX:
        return f"{report.vcpus} processors"
    amounts = (report.ram_bytes, report.disk_bytes, report.disk_used_bytes)
    if not all(0 <= each <= BYTES_MAX for each in (*amounts, *(card.memory_bytes for card in report.gpus))):
        return "an impossible amount of memory or disk"
    slots = [card.slot for card in report.gpus]
    return "a card twice" if len(set(slots)) < len(slots) else ""
