"""Rows of offers: columns, encoding and a few plain reads. The same SQL runs on SQLite and PostgreSQL.

Invariant: all rows of a source have its `import_number`, so readers see all of an import or nothing. Searching is in
question/, writing in source/, grouping for plans in shape/.
"""

from collections.abc import Callable, Iterator, Sequence
from operator import itemgetter
from typing import Any, Final

from msgspec.structs import astuple

from teraflock.base.money import Price
from teraflock.offer.model import WITH_GPU, Offer
from teraflock.offer.rules import place_key
from teraflock.storage.database import Row, Transaction
from teraflock.storage.table import number

COLUMNS: Final = (
    "import_number", "place", "source", "provider", "kind", "standing", "id", "cited", "region", "zone",
    "instance_type", "gpu", "gpu_name", "gpu_count", "gpu_share", "gpu_memory_bytes", "gpu_tflops", "vcpus", "cpu",
    "ram_bytes", "disk_gb", "network_gbps", "mode", "term_months", "quoted_micros", "quoted_per", "basis", "currency",
    "price_micros_per_month", "since", "as_of", "until", "flags", "note", "outdated",
)  # fmt: skip
"""The fields of `Offer`, with `quoted` as two columns, and two columns of the store."""
_FIELDS: Final = Offer.__struct_fields__
_ID, _SINCE, _QUOTED, _CURRENCY, _FLAGS, _OUTDATED = map(
    _FIELDS.index, ("id", "since", "quoted", "currency", "flags", "outdated")
)
_QUOTED_PER: Final = COLUMNS.index("quoted_per")
_to_row: Callable[[Sequence[Any]], Row] = itemgetter(
    *map((*_FIELDS, "import_number", "place", "quoted_micros", "quoted_per").index, COLUMNS)
)
_to_fields: Callable[[Row], Row] = itemgetter(
    *(COLUMNS.index("quoted_micros" if each == "quoted" else each) for each in _FIELDS)
)
LIST: Final = ", ".join(COLUMNS)
IS_WITH_GPU: Final = "kind IN ('" + "', '".join(WITH_GPU) + "')"


def every(tx: Transaction) -> Iterator[Offer]:
    """Yield all current offers, unordered. The index sorts them itself."""
    return map(offer_from, tx.each(f"SELECT {LIST} FROM offer"))


def by_id(tx: Transaction, id: int) -> Offer | None:
    row = tx.one(f"SELECT {LIST} FROM offer WHERE id = :id", id=id)
    return offer_from(row) if row else None


def with_gpu(tx: Transaction) -> Iterator[Offer]:
    """Yield all current offers with a GPU, unordered."""
    return map(offer_from, tx.each(f"SELECT {LIST} FROM offer WHERE {IS_WITH_GPU}"))


def without_any_gpu(tx: Transaction) -> int:
    return number(tx, "SELECT CAST(COALESCE(SUM(offers), 0) AS BIGINT) FROM offer_count WHERE kind = 'none'")


def providers(tx: Transaction) -> list[str]:
    return [row[0] for row in tx.all("SELECT DISTINCT provider FROM offer ORDER BY provider")]


def gpus(tx: Transaction) -> list[str]:
    return [row[0] for row in tx.all("SELECT DISTINCT gpu FROM offer_count WHERE gpu <> ''")]


def regions(tx: Transaction) -> list[str]:
    return [row[0] for row in tx.all("SELECT DISTINCT region FROM offer ORDER BY region")]


def row_from(offer: Offer, id: int, since: str, import_number: int) -> Row:
    quoted = offer.quoted
    price = (quoted.micros, quoted.per) if quoted else (None, None)
    fields = [*astuple(offer), import_number, place_key(offer.provider, offer.region, offer.zone), *price]
    fields[_ID], fields[_SINCE] = id, since
    fields[_FLAGS], fields[_OUTDATED] = " ".join(offer.flags), int(offer.outdated)
    return _to_row(fields)


def offer_from(row: Row) -> Offer:
    fields: list[Any] = [*_to_fields(row)]
    if (micros := fields[_QUOTED]) is not None:
        fields[_QUOTED] = Price(micros, fields[_CURRENCY], row[_QUOTED_PER])
    fields[_FLAGS] = tuple(fields[_FLAGS].split()) if fields[_FLAGS] else ()
    fields[_OUTDATED] = bool(fields[_OUTDATED])
    return Offer(*fields)
