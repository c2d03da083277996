"""All SQL about sources, and about replacing the offers of one.

What holds: a price that a later import changed or dropped stands in `offer_past`, with the day from which it no longer
held; counts are those of the offers that stand.
"""

from collections.abc import Iterable
from sys import intern
from typing import Final, NamedTuple

import msgspec

from teraflock.offer.model import Offer, Source
from teraflock.offer.store import COLUMNS, LIST, row_from
from teraflock.storage.database import Row, Transaction

_INSERT: Final = f"INSERT INTO offer ({LIST}) VALUES ({', '.join(':' + name for name in COLUMNS)})"
_UNTIL: Final = (
    "COALESCE(NULLIF(new.since, ''), :until)"  # the day from which the next price holds, if there is one
)
_OLD_LIST: Final = ", ".join(_UNTIL if name == "until" else f"old.{name}" for name in COLUMNS)
BATCH_ROWS: Final = (
    2_000  # rows handed to the engine at a time: bounds memory, and is past the point of speed
)

_SOURCE_COLUMNS: Final = Source.__struct_fields__
_SOURCE_LIST: Final = ", ".join(_SOURCE_COLUMNS)


class Standing(msgspec.Struct, frozen=True, gc=False):
    """What an import must know of the offer it replaces. A hundred thousand are held, and no cycle among them."""

    price_micros_per_month: int | None
    currency: str
    standing: str
    since: str


def sources(tx: Transaction) -> list[Source]:
    rows = tx.all(f"SELECT {_SOURCE_LIST} FROM offer_source ORDER BY name")
    return [Source(**dict(zip(_SOURCE_COLUMNS, row, strict=True))) for row in rows]


def source(tx: Transaction, name: str) -> Source | None:
    row = tx.one(f"SELECT {_SOURCE_LIST} FROM offer_source WHERE name = :name", name=name)
    return Source(**dict(zip(_SOURCE_COLUMNS, row, strict=True))) if row else None


def known_currencies(tx: Transaction) -> list[str]:
    rows = tx.all("SELECT currencies FROM offer_source")
    return sorted({currency for (text,) in rows for currency in text.split()})


def next_import_number(tx: Transaction) -> int:
    row = tx.one("SELECT COALESCE(MAX(import_number), 0) + 1 FROM offer_source")
    return int(row[0]) if row else 1


class Catalog(NamedTuple):
    """Which offers stand: another import gives another value."""

    import_number: int
    offers: int


def catalog(tx: Transaction) -> Catalog:
    row = tx.one(
        "SELECT COALESCE(MAX(import_number), 0), CAST(COALESCE(SUM(offers), 0) AS BIGINT) FROM offer_source"
    )
    return Catalog(int(row[0]), int(row[1])) if row else Catalog(0, 0)


def put_source(tx: Transaction, source: Source) -> None:
    tx.run("DELETE FROM offer_source WHERE name = :name", name=source.name)
    tx.run(
        f"INSERT INTO offer_source ({_SOURCE_LIST}) VALUES ({', '.join(':' + name for name in _SOURCE_COLUMNS)})",
        **msgspec.structs.asdict(source),
    )


def standing_of(tx: Transaction, name: str) -> dict[int, Standing]:
    rows = tx.each(
        "SELECT id, price_micros_per_month, currency, standing, since FROM offer WHERE source = :name",
        name=name,
    )
    # the few texts are shared between all rows: a quarter of the memory
    return {row[0]: Standing(row[1], intern(row[2]), intern(row[3]), intern(row[4])) for row in rows}


def add(tx: Transaction, offers: Iterable[tuple[Offer, int, str]], import_number: int) -> None:
    """Write offers, each with its id and the day since when its price holds."""
    batch: list[Row] = []
    for offer, id, since in offers:
        batch.append(row_from(offer, id, since, import_number))
        if len(batch) == BATCH_ROWS:
            tx.run_many(_INSERT, batch)
            batch.clear()
    if batch:
        tx.run_many(_INSERT, batch)


def supersede(tx: Transaction, name: str, import_number: int, until: str, *, changed: bool = True) -> None:
    """Drop the source's offers of earlier imports; those whose price is another now, or gone, go into the past.

    A price held until the next one began; one that is gone, until the day `until`. Where the caller knows that none is
    (`changed` is false), they are not compared again.
    """
    if changed:
        _keep_past(tx, name, import_number, until)
    tx.run(
        "DELETE FROM offer WHERE source = :name AND import_number < :import_number",
        name=name,
        import_number=import_number,
    )


def _keep_past(tx: Transaction, name: str, import_number: int, until: str) -> None:
    tx.run(
        f"INSERT INTO offer_past ({LIST}) SELECT {_OLD_LIST} FROM offer AS old LEFT JOIN offer AS new"
        " ON new.id = old.id AND new.import_number = :import_number"
        " WHERE old.source = :name AND old.import_number < :import_number AND (new.id IS NULL OR"
        " new.standing <> old.standing OR new.currency <> old.currency OR"
        " COALESCE(new.price_micros_per_month, -1) <> COALESCE(old.price_micros_per_month, -1))",
        name=name,
        import_number=import_number,
        until=until,
    )


def count_anew(tx: Transaction, name: str) -> None:
    """Bring the counts of a source in line with its offers."""
    tx.run("DELETE FROM offer_count WHERE source = :name", name=name)
    tx.run(
        "INSERT INTO offer_count (source, kind, gpu, standing, as_of, offers)"
        " SELECT source, kind, gpu, standing, as_of, COUNT(*) FROM offer WHERE source = :name"
        " GROUP BY source, kind, gpu, standing, as_of",
        name=name,
    )
