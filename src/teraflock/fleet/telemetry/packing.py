"""Packs the samples of a host into text, and unpacks them. Pure.

A pack has up to `SAMPLES` samples of every series. A series has records of unsigned 64-bit integers: the number of the
sample within the pack, then its fields; `NONE` is a missing value. Records are in the order of their numbers. Packs are
compressed: neighbouring records are alike.
"""

import zlib
from array import array
from base64 import b64decode, b64encode
from collections.abc import Mapping
from typing import Final

import msgspec

from teraflock.fleet.telemetry.model import CARD_FIELDS, GUEST_FIELDS

SAMPLES: Final = 30
NONE: Final = 2**64 - 1
LEVEL: Final = 1  # higher levels cost much more time and save little

Key = tuple[str, str]
"""The slot of a card (empty: the instance itself), and the instance."""
Record = tuple[int | None, ...]
Pack = dict[Key, dict[int, Record]]
"""For each series, its records by the number of the sample."""


def fields_of(key: Key) -> tuple[str, ...]:
    return CARD_FIELDS if key[0] else GUEST_FIELDS


def packed(pack: Pack) -> str:
    content = {f"{slot}|{instance}": _bytes(records) for (slot, instance), records in pack.items()}
    return b64encode(zlib.compress(msgspec.msgpack.encode(content), LEVEL)).decode()


def unpacked(text: str) -> Pack:
    content = msgspec.msgpack.decode(zlib.decompress(b64decode(text)), type=dict[str, bytes])
    pack: Pack = {}
    for name, records in content.items():
        slot, _, instance = name.rpartition("|")
        pack[slot, instance] = _records(records, len(fields_of((slot, instance))) + 1)
    return pack


def with_sample(pack: Pack, number: int, sample: Mapping[Key, Record]) -> Pack:
    """The pack with one more sample."""
    more = {key: {**pack.get(key, {}), number: record} for key, record in sample.items()}
    return {**pack, **more}


def has_sample(pack: Pack, number: int) -> bool:
    return any(number in records for records in pack.values())


def _bytes(records: Mapping[int, Record]) -> bytes:
    flat = array("Q")
    for number in sorted(records):
        flat.append(number)
        flat.extend([NONE if value is None else max(0, min(value, NONE - 1)) for value in records[number]])
    return flat.tobytes()


def _records(content: bytes, width: int) -> dict[int, Record]:
    flat = array("Q", content).tolist()
    rows = (flat[at : at + width] for at in range(0, len(flat), width))
    return {row[0]: tuple([None if value == NONE else value for value in row[1:]]) for row in rows}
