"""Parses the machine types of a simulated cloud.

`NAME=COUNTxMODEL@REGION:PRICE[/SPOT]`, with more regions after commas and more types after semicolons. Prices
are in USD per hour: `gpu-1=1xA100-80@east:1.29/0.45,west:1.35; gpu-8=8xH100@east:23.90`. A count of 0 means
no card: `small=0@east:0.05`.
"""

import re
from functools import cache
from typing import Final

from teraflock.base.errors import BadInput
from teraflock.base.quantities import GIB
from teraflock.catalog.names import find_cards
from teraflock.instance.driver import MachineType

TYPES: Final = (
    "sim-cpu=0@sim-east:0.05/0.02,sim-west:0.06/0.02;"
    " sim-1xv100=1xV100@sim-east:0.90/0.30,sim-west:1.00/0.30;"
    " sim-8xa100=8xA100-80@sim-east:14.32/5.20"
)
VCPUS_MIN, VCPUS_PER_GPU = 4, 12
RAM_GIB_MIN, RAM_GIB_PER_GPU = 16, 96
DISK_GIB_MIN, DISK_GIB_PER_GPU = 64, 512
_TYPE: Final = re.compile(r"([a-z0-9][a-z0-9._-]*)=(\d{1,2})(?:x([^@]+))?@(.+)")
_PLACE: Final = re.compile(r"([a-z0-9][a-z0-9-]*):(\d+(?:\.\d{1,6})?)(?:/(\d+(?:\.\d{1,6})?))?")


@cache
def parse(text: str) -> tuple[MachineType, ...]:
    return tuple(each for part in text.split(";") if part.strip() for each in _types(part.strip()))


def _types(text: str) -> list[MachineType]:
    match = _TYPE.fullmatch(text)
    if match is None or (int(match[2]) > 0) != bool(match[3]):
        raise _bad(text)
    gpus = int(match[2])
    card = find_cards(match[3])[0] if gpus else None
    return [
        MachineType(
            name=match[1],
            region=region,
            gpu=card.id if card else "",
            gpus=gpus,
            gpu_memory_bytes=(card.usable_memory_bytes or card.memory_bytes) if card else 0,
            vcpus=max(VCPUS_MIN, VCPUS_PER_GPU * gpus),
            ram_bytes=max(RAM_GIB_MIN, RAM_GIB_PER_GPU * gpus) * GIB,
            disk_bytes=max(DISK_GIB_MIN, DISK_GIB_PER_GPU * gpus) * GIB,
            prices=prices,
            currency="USD",
        )
        for region, prices in (_place(place.strip(), text) for place in match[4].split(","))
    ]


def _place(text: str, whole: str) -> tuple[str, dict[str, int]]:
    match = _PLACE.fullmatch(text)
    if match is None:
        raise _bad(whole)
    prices = {"on-demand": _micros(match[2])}
    if match[3]:
        prices |= {"spot": _micros(match[3]), "bid": _micros(match[3])}
    return match[1], prices


def _micros(text: str) -> int:
    whole, _, rest = text.partition(".")
    return int(whole) * 10**6 + int(rest.ljust(6, "0") or "0")


def _bad(text: str) -> BadInput:
    return BadInput(
        f"Invalid simulated machine type: `{text[:80]}`",
        hint="Write it as `gpu-1=1xA100-80@east:1.29/0.45,west:1.35`",
    )
