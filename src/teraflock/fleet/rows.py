"""Hosts as rows. Pure. Cards are in a table of their own; what instances hold is summed from their rows."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from teraflock.fleet.model import HOST_MOVES, Gpu, Host, HostCost
from teraflock.storage.database import Row
from teraflock.storage.life_cycle import LifeCycle
from teraflock.storage.table import Table

HOST: Final = Table(
    "host",
    Host,
    leave_out=(
        "allow_out",
        "gpus",
        "labels",
        "cost",
        "vcpus_held",
        "ram_bytes_held",
        "disk_bytes_held",
        "alike",
    ),
)
STATES: Final = LifeCycle("host", HOST_MOVES)
COLUMNS: Final = f"{HOST.names}, allow_out, cost_micros_per_hour, cost_currency"
"""For a SELECT whose rows `host_from` reads."""


def host_from(
    row: Row,
    held: tuple[int, int, int] = (0, 0, 0),
    gpus: tuple[Gpu, ...] = (),
    labels: Mapping[str, str] = MappingProxyType({}),
) -> Host:
    *columns, allow_out, cost_micros, currency = row
    return HOST.value(
        tuple(columns),
        allow_out=tuple(allow_out.split()),
        cost=HostCost(micros_per_hour=cost_micros, currency=currency) if cost_micros is not None else None,
        gpus=gpus,
        labels=labels,
        vcpus_held=held[0],
        ram_bytes_held=held[1],
        disk_bytes_held=held[2],
    )
