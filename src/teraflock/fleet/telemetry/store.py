"""All SQL about readings. Rows belong to hosts; who may see which series is decided by `instance/telemetry`."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

import msgspec

from teraflock.base.clock import microseconds
from teraflock.fleet.model import HostId
from teraflock.fleet.telemetry import packing, rules
from teraflock.fleet.telemetry.model import LastOfHost, LastReading
from teraflock.fleet.telemetry.packing import Pack
from teraflock.fleet.telemetry.rules import COARSE_SECONDS, FINE_SECONDS, KEPT
from teraflock.storage.database import Transaction
from teraflock.storage.table import in_list, put_row

_decode: Final = msgspec.json.Decoder(LastReading).decode


def last(tx: Transaction, host_id: HostId) -> LastReading | None:
    row = tx.one("SELECT content FROM reading_last WHERE host_id = :host", host=host_id)
    return _decode(row[0]) if row else None


def last_of_own_hosts(tx: Transaction, ids: Sequence[str] = ()) -> tuple[LastOfHost, ...]:
    """The last reading of own hosts, all or those with these ids, by name."""
    marks, values = in_list(ids) if ids else ("", {})
    only = f" AND h.id IN ({marks})" if ids else ""
    rows = tx.all(
        "SELECT h.id, h.name, r.content FROM reading_last r JOIN host h ON h.id = r.host_id"
        f" WHERE h.kind = 'own' AND h.state <> 'gone'{only}",
        **values,
    )
    found = [LastOfHost(host_id=HostId(id), host=name, reading=_decode(text)) for id, name, text in rows]
    return tuple(sorted(found, key=lambda each: each.host))


def last_of(tx: Transaction, host_ids: Sequence[HostId]) -> dict[HostId, LastReading]:
    """The last readings of these hosts."""
    marks, values = in_list(host_ids)
    rows = tx.all(f"SELECT host_id, content FROM reading_last WHERE host_id IN ({marks})", **values)
    return {HostId(id): _decode(content) for id, content in rows}


def host_ids(tx: Transaction, site: str) -> dict[str, HostId]:
    """The ids of a site's own hosts, by name."""
    rows = tx.all(
        "SELECT name, id FROM host WHERE site = :site AND kind = 'own' AND state <> 'gone'", site=site
    )
    return {name: HostId(id) for name, id in rows}


def add(tx: Transaction, host_id: HostId, reading: LastReading) -> bool:
    """Store a reading. Return False if the sample of this time exists: another server has read it."""
    start_us = rules.pack_start_us(reading.at, FINE_SECONDS)
    number = rules.sample_number(reading.at, FINE_SECONDS)
    newest_us, content = _newest_pack(tx, host_id, FINE_SECONDS, start_us)
    new = packing.added(content if newest_us == start_us else "", number, rules.sample_of(reading))
    if new is None:
        return False
    if content and newest_us < start_us:
        _add_coarse(tx, host_id, newest_us, packing.unpacked(content))
    _put_pack(tx, host_id, FINE_SECONDS, start_us, new)
    text = msgspec.json.encode(reading).decode()
    put_row(tx, "reading_last", "host_id", host_id=host_id, at_us=microseconds(reading.at), content=text)
    return True


def _add_coarse(tx: Transaction, host_id: HostId, fine_start_us: int, fine: Pack) -> None:
    """Add a finished pack of fine samples as one coarse sample."""
    step_us = COARSE_SECONDS * rules.MICROS
    number = fine_start_us // step_us % packing.SAMPLES
    start_us = fine_start_us - number * step_us
    newest_us, content = _newest_pack(tx, host_id, COARSE_SECONDS, start_us)
    new = packing.added(content if newest_us == start_us else "", number, rules.joined(fine))
    if new is not None:
        _put_pack(tx, host_id, COARSE_SECONDS, start_us, new)


def _newest_pack(tx: Transaction, host_id: HostId, step_seconds: int, until_us: int) -> tuple[int, str]:
    """The start and content of the newest pack that begins at `until_us` or earlier. Empty: there is none."""
    row = tx.one(
        "SELECT start_us, content FROM reading_past WHERE host_id = :host AND step_seconds = :step"
        " AND start_us <= :until ORDER BY start_us DESC LIMIT 1",
        host=host_id,
        step=step_seconds,
        until=until_us,
    )
    return (row[0], row[1]) if row else (0, "")


def _put_pack(tx: Transaction, host_id: HostId, step_seconds: int, start_us: int, content: str) -> None:
    key = {"host_id": host_id, "step_seconds": step_seconds, "start_us": start_us}
    put_row(tx, "reading_past", " ".join(key), **key, content=content)


def packs(
    tx: Transaction, host_id: HostId, step_seconds: int, first: datetime, until: datetime
) -> dict[int, Pack]:
    """The packs with samples of a period, by their start."""
    rows = tx.all(
        "SELECT start_us, content FROM reading_past WHERE host_id = :host AND step_seconds = :step"
        " AND start_us >= :first AND start_us <= :until",
        host=host_id,
        step=step_seconds,
        first=rules.pack_start_us(first, step_seconds),
        until=microseconds(until),
    )
    return {start_us: packing.unpacked(content) for start_us, content in rows}


def forget_old(tx: Transaction, now: datetime) -> None:
    for step_seconds, kept in KEPT.items():
        tx.run(
            "DELETE FROM reading_past WHERE step_seconds = :step AND start_us < :before",
            step=step_seconds,
            before=rules.pack_start_us(now - kept, step_seconds),
        )
