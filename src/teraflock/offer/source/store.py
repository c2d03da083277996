"""All SQL about sources and about replacing their offers.

Invariants: a price that a later import changed or removed is in `offer_past`, with the date on which it ended; counts
include only current offers.
"""

from collections.abc import Iterable
from sys import intern
from typing import Final, NamedTuple

import msgspec

from teraflock.offer.model import DOUBTFUL_PRICE, Offer, Source
from teraflock.offer.store import COLUMNS, LIST, row_from
from teraflock.storage.database import Row, Transaction
from teraflock.storage.table import add_row, insert_into, number

_INSERT: Final = insert_into("offer", *COLUMNS)
_UNTIL: Final = (
    "COALESCE(NULLIF(new.since, ''), :until)"  # the date on which the next price starts, if there is one
)
_OLD_LIST: Final = ", ".join(_UNTIL if name == "until" else f"old.{name}" for name in COLUMNS)
BATCH_ROWS: Final = 2_000  # rows per statement: bounds memory; larger batches are not faster

_SOURCE_COLUMNS: Final = Source.__struct_fields__
_SOURCE_LIST: Final = ", ".join(_SOURCE_COLUMNS)
_GROUP: Final = "source, provider, gpu, mode, currency"
_MACHINE: Final = "provider, gpu, gpu_count, gpu_share, mode, term_months"
_SURE: Final = " AND ".join(
    ["kind = 'gpu'", "standing = 'priced'", *(f"flags NOT LIKE '%{flag}%'" for flag in DOUBTFUL_PRICE)]
)
_SAME: Final = (
    "offer.kind = 'gpu' AND offer.standing = 'priced' AND offer.provider = fresh.provider AND offer.gpu = fresh.gpu"
    " AND offer.gpu_count = fresh.gpu_count AND offer.gpu_share = fresh.gpu_share"
    " AND COALESCE(offer.mode, '') = COALESCE(fresh.mode, '')"
    " AND COALESCE(offer.term_months, 0) = COALESCE(fresh.term_months, 0)"
    " AND offer.as_of <> '' AND offer.as_of < fresh.newest"
    " AND fresh.newest NOT LIKE offer.as_of || '%'"  # `2022` is not older than `2022-07`
)


class StoredPrice(msgspec.Struct, frozen=True, gc=False):
    """What an import needs to know about the offer that it replaces. Has `gc=False`, because it has no cycles."""

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
    """Identifies the current set of offers. Changes with every import."""

    import_number: int
    offers: int


def catalog(tx: Transaction) -> Catalog:
    row = tx.one(
        "SELECT COALESCE(MAX(import_number), 0), CAST(COALESCE(SUM(offers), 0) AS BIGINT) FROM offer_source"
    )
    return Catalog(int(row[0]), int(row[1])) if row else Catalog(0, 0)


def put_source(tx: Transaction, source: Source) -> None:
    tx.run("DELETE FROM offer_source WHERE name = :name", name=source.name)
    add_row(tx, "offer_source", **msgspec.structs.asdict(source))


def stored_prices(tx: Transaction, name: str) -> dict[int, StoredPrice]:
    rows = tx.each(
        "SELECT id, price_micros_per_month, currency, standing, since FROM offer WHERE source = :name",
        name=name,
    )
    # Interning the few distinct texts saves three quarters of the memory.
    return {row[0]: StoredPrice(row[1], intern(row[2]), intern(row[3]), intern(row[4])) for row in rows}


def add(tx: Transaction, offers: Iterable[tuple[Offer, int, str]], import_number: int) -> None:
    """Insert offers, each with its id and the start date of its price."""
    batch: list[Row] = []
    for offer, id, since in offers:
        batch.append(row_from(offer, id, since, import_number))
        if len(batch) == BATCH_ROWS:
            tx.run_many(_INSERT, batch)
            batch.clear()
    if batch:
        tx.run_many(_INSERT, batch)


def supersede(tx: Transaction, name: str, import_number: int, until: str, *, changed: bool = True) -> None:
    """Delete the source's offers of earlier imports. Move changed and removed prices to the past.

    A changed price ends when the next one starts. A removed price ends on `until`. With `changed=False`, the caller
    knows that no price changed, and prices are not compared.
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


class PriceRange(NamedTuple):
    """The lowest and highest monthly price of one GPU among the offers of a group."""

    source: str
    provider: str
    gpu: str
    mode: str
    currency: str
    lowest: int
    highest: int


def price_ranges(tx: Transaction) -> list[PriceRange]:
    """Return the prices of whole GPUs by source, provider, GPU model, purchase mode and currency."""
    rows = tx.all(
        f"SELECT {_GROUP}, MIN(price_micros_per_month / gpu_count), MAX(price_micros_per_month / gpu_count)"
        f" FROM offer WHERE {_SURE} AND gpu_count > 0 AND gpu_share >= 1 AND mode NOT IN ('free', 'owned')"
        f" GROUP BY {_GROUP}"
    )
    return [PriceRange(*row) for row in rows]


def flag_prices(tx: Transaction, group: PriceRange, least: int, most: int, flag: str) -> None:
    """Add a flag to the offers of a group whose price per GPU is below `least` or above `most`."""
    named = ("source", "provider", "gpu", "mode", "currency")
    same = " AND ".join(f"{name} = :{name}" for name in named)
    tx.run(
        "UPDATE offer SET flags = CASE WHEN flags = '' THEN CAST(:flag AS TEXT) ELSE flags || ' ' || :flag END"
        f" WHERE {same} AND {_SURE} AND gpu_count > 0 AND gpu_share >= 1"
        " AND (price_micros_per_month / gpu_count < :least OR price_micros_per_month / gpu_count > :most)",
        **{name: getattr(group, name) for name in named}, least=least, most=most, flag=flag,
    )  # fmt: skip


def flagged(tx: Transaction, name: str, flag: str) -> int:
    return number(
        tx,
        "SELECT COUNT(*) FROM offer WHERE source = :name AND flags LIKE :flag",
        name=name,
        flag=f"%{flag}%",
    )


def mark_outdated(tx: Transaction) -> None:
    """Mark the priced offers for which another offer has a newer price of the same machine.

    That is: the same provider, GPUs and purchase mode, the same instance type, and the same region. An offer without
    an instance type or region, as in surveys, is outdated by any type or region. A later survey without types outdates
    offers without a region.
    """
    tx.run("UPDATE offer SET outdated = 0 WHERE outdated <> 0")
    tx.run(
        f"UPDATE offer SET outdated = 1 FROM (SELECT {_MACHINE}, instance_type, region, MAX(as_of) AS newest"
        f" FROM offer WHERE {_SURE} GROUP BY {_MACHINE}, instance_type, region) AS fresh"
        f" WHERE {_SAME} AND offer.instance_type = fresh.instance_type AND offer.region = fresh.region"
    )
    tx.run(
        f"UPDATE offer SET outdated = 1 FROM (SELECT {_MACHINE}, instance_type, MAX(as_of) AS newest"
        f" FROM offer WHERE {_SURE} GROUP BY {_MACHINE}, instance_type) AS fresh"
        f" WHERE {_SAME} AND fresh.instance_type IN (offer.instance_type, '') AND offer.region = ''"
    )
    tx.run(
        f"UPDATE offer SET outdated = 1 FROM (SELECT {_MACHINE}, MAX(as_of) AS newest"
        f" FROM offer WHERE {_SURE} GROUP BY {_MACHINE}) AS fresh"
        f" WHERE {_SAME} AND (offer.instance_type = '' OR offer.flags LIKE '%inferred:name%')"
    )


def update_counts(tx: Transaction, name: str) -> None:
    """Compute the counts of a source from its offers."""
    tx.run("DELETE FROM offer_count WHERE source = :name", name=name)
    tx.run(
        "INSERT INTO offer_count (source, kind, gpu, standing, as_of, gpu_share, outdated, place, offers)"
        " SELECT source, kind, gpu, standing, as_of, gpu_share, outdated, place, COUNT(*) FROM offer"
        " WHERE source = :name GROUP BY source, kind, gpu, standing, as_of, gpu_share, outdated, place",
        name=name,
    )
