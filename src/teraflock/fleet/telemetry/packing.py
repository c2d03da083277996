"""Packs the samples of a host into text, and unpacks them. Pure.

A pack has up to `SAMPLES` samples of every series. A series has records of unsigned 64-bit integers: the number of the
sample within the pack, then its fields; `NONE` is a missing value. Records are in the order of their numbers. Packs are
compressed: neighbouring records are alike.
"""

import sys
import zlib
from array import array
from base64 import b64decode, b64encode
from collections.abc import Mapping
from typing import Final

import msgspec

from teraflock.fleet.telemetry.model import CARD_FIELDS, GUEST_FIELDS

SAMPLES: Final = 30
NONE: Final = 2**64 - 1
WORD: Final = 8
SERIES_MAX: Final = 4096
"""Of one pack. A host that invents other cards in every reading fills neither the database nor the memory."""
LEVEL: Final = 1  # higher levels cost much more time and save little

Key = tuple[str, str]
"""The slot of a card (empty: the instance itself), and the instance."""
Record = tuple[int | None, ...]
Pack = dict[Key, dict[int, Record]]
"""For each series, its records by the number of the sample."""


def fields_of(key: Key) -> tuple[str, ...]:
    return CARD_FIELDS if key[0] else GUEST_FIELDS


def packed(pack: Pack) -> str:
    return _text({f"{slot}|{instance}": _bytes(records) for (slot, instance), records in pack.items()})


def unpacked(text: str) -> Pack:
    pack: Pack = {}
    for name, records in _content(text).items():
        slot, _, instance = name.rpartition("|")
        pack[slot, instance] = _records(records, len(fields_of((slot, instance))) + 1)
    return pack


def added(text: str, number: int, sample: Mapping[Key, Record]) -> str | None:
    """The pack with one more sample, without decoding the others. None: it has a sample of this number or a later one.

    `text` is empty for a new pack.
    """
    content = _content(text) if text else {}
    for (slot, instance), record in sample.items():
        name, width = f"{slot}|{instance}", (len(record) + 1) * WORD
        before = content.get(name, b"")
        if before and int.from_bytes(before[-width : WORD - width], sys.byteorder) >= number:
            return None
        if not before and len(content) >= SERIES_MAX:
            continue
        content[name] = before + _bytes({number: record})
    return _text(content)


def _text(content: Mapping[str, bytes]) -> str:
    return b64encode(zlib.compress(msgspec.msgpack.encode(content), LEVEL)).decode()


def _content(text: str) -> dict[str, bytes]:
    return msgspec.msgpack.decode(zlib.decompress(b64decode(text)), type=dict[str, bytes])


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
