"""Rows of offers: columns, encoding and a few plain reads. The same SQL runs on SQLite and PostgreSQL.

Invariant: all rows of a source have its `import_number`, so readers see all of an import or nothing. Searching is in
question/, writing in source/, grouping for plans in shape/.
"""

from collections.abc import Iterator
from typing import Any, Final

from msgspec.structs import astuple

from teraflock.base.money import Price
from teraflock.offer.model import WITH_GPU, Offer
from teraflock.offer.rules import place_key
from teraflock.storage.database import Row, Transaction

COLUMNS: Final = (
    "import_number", "place", "source", "provider", "kind", "standing", "id", "cited", "region", "zone",
    "instance_type", "gpu", "gpu_name", "gpu_count", "gpu_share", "gpu_memory_bytes", "gpu_tflops", "vcpus", "cpu",
    "ram_bytes", "disk_gb", "network_gbps", "mode", "term_months", "quoted_micros", "quoted_per", "basis", "currency",
    "price_micros_per_month", "since", "as_of", "until", "flags", "note", "outdated",
)  # fmt: skip
"""Two columns of the store, then the fields of `Offer` in order, with `quoted` as two columns."""
LIST: Final = ", ".join(COLUMNS)
IS_WITH_GPU: Final = "kind IN ('" + "', '".join(WITH_GPU) + "')"


def every(tx: Transaction) -> Iterator[Offer]:
    """Yield all current offers, unordered. The index sorts them itself."""
    return map(offer_from, tx.each(f"SELECT {LIST} FROM offer"))


def with_gpu(tx: Transaction) -> Iterator[Offer]:
    """Yield all current offers with a GPU, unordered."""
    return map(offer_from, tx.each(f"SELECT {LIST} FROM offer WHERE {IS_WITH_GPU}"))


def without_any_gpu(tx: Transaction) -> int:
    row = tx.one("SELECT CAST(COALESCE(SUM(offers), 0) AS BIGINT) FROM offer_count WHERE kind = 'none'")
    return int(row[0]) if row else 0


def providers(tx: Transaction) -> list[str]:
    return [row[0] for row in tx.all("SELECT DISTINCT provider FROM offer ORDER BY provider")]


def gpus(tx: Transaction) -> list[str]:
    return [row[0] for row in tx.all("SELECT DISTINCT gpu FROM offer_count WHERE gpu <> ''")]


def regions(tx: Transaction) -> list[str]:
    return [row[0] for row in tx.all("SELECT DISTINCT region FROM offer ORDER BY region")]


def row_from(offer: Offer, id: int, since: str, import_number: int) -> Row:
    fields = astuple(offer)
    quoted = offer.quoted
    price = (quoted.micros, quoted.per) if quoted else (None, None)
    return (
        import_number, place_key(offer.provider, offer.region, offer.zone), *fields[:4], id, *fields[5:22], *price,
        *fields[23:26], since, *fields[27:29],
        " ".join(offer.flags), offer.note, int(offer.outdated),
    )  # fmt: skip


def offer_from(row: Row) -> Offer:
    quoted_micros, quoted_per, basis, currency = row[24:28]
    quoted = None if quoted_micros is None else Price(quoted_micros, currency, quoted_per)
    flags = tuple(row[32].split()) if row[32] else ()
    fields: list[Any] = [*row[2:24], quoted, basis, currency, *row[28:32], flags, row[33], bool(row[34])]
    return Offer(*fields)
