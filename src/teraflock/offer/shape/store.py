"""All SQL about shapes. Imports store the shapes of their offers; a test checks that they match the offers."""

from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import Any, Final

from msgspec.structs import replace

from teraflock.offer.model import DOUBTFUL_PRICE, Offer, Shape
from teraflock.offer.place.store import in_places
from teraflock.offer.question.store import one_of_column, where_of
from teraflock.offer.store import IS_WITH_GPU, LIST, offer_from
from teraflock.storage.database import Row, Transaction

_FIRST_COLUMNS: Final = (
    "provider", "instance_type", "kind", "gpu", "gpu_name", "gpu_count", "gpu_share", "gpu_memory_bytes", "vcpus",
    "ram_bytes", "mode", "term_months", "standing", "currency",
)  # fmt: skip
"""The first fields of `Shape`, in order."""
_SHAPE_COLUMNS: Final = (*_FIRST_COLUMNS, "as_of", "outdated")
_FIRST: Final = ", ".join(_FIRST_COLUMNS)
_SHAPE_LIST: Final = ", ".join(_SHAPE_COLUMNS)
_DOUBTFUL_AT: Final = len(_FIRST_COLUMNS)
_DOUBTED: Final = " OR ".join(f"flags LIKE '%{flag}%'" for flag in DOUBTFUL_PRICE)
_DOUBTFUL: Final = f"CASE WHEN {_DOUBTED} THEN 1 ELSE 0 END"
_shape_fields: Final = attrgetter(*_SHAPE_COLUMNS)


def shapes(tx: Transaction, at: Sequence[str] | None = None, sources: Sequence[str] = ()) -> list[Shape]:
    """Return the shapes of all current offers with a GPU at these places or anywhere, each with its lowest price.

    `sources` limits them to the offers of some sources.
    """
    wanted, names = where_of(one_of_column("--source", "source", sources))
    if at is None:
        rows = tx.all(
            f"SELECT {_FIRST}, doubtful, price_micros_per_month, offers, as_of, outdated FROM offer_shape"
            f" WHERE {wanted}",
            **names,
        )
        return _merged(map(_shape_from, rows))
    there, values = in_places("place", at)
    rows = tx.all(
        f"SELECT {_FIRST}, {_DOUBTFUL}, MIN(price_micros_per_month), COUNT(*), as_of, outdated"
        f" FROM offer WHERE {IS_WITH_GPU} AND {there} AND {wanted} GROUP BY {_SHAPE_LIST}, {_DOUBTFUL}",
        **values,
        **names,
    )
    return list(map(_shape_from, rows))


def cheapest_of(
    tx: Transaction, shape: Shape, at: Sequence[str] | None = None, sources: Sequence[str] = ()
) -> Offer | None:
    """Return the cheapest offer of a shape at these places or anywhere. On a tie, the first by id."""
    values = {name: getattr(shape, name) for name in (*_SHAPE_COLUMNS, "price_micros_per_month")}
    values["outdated"] = int(shape.outdated)
    known = {name: value for name, value in values.items() if value is not None}
    same = " AND ".join(f"{name} = :{name}" if name in known else f"{name} IS NULL" for name in values)
    indexed = "gpu <> ''" if shape.gpu else "gpu = ''"  # for SQLite's partial index, as in `_leading`
    there, keys = ("1 = 1", {}) if at is None else in_places("place", at)
    wanted, names = where_of(one_of_column("--source", "source", sources))
    where = f"{indexed} AND {same} AND {_DOUBTFUL} = {int(shape.doubtful)} AND {there} AND {wanted}"
    row = tx.one(f"SELECT {LIST} FROM offer WHERE {where} ORDER BY id LIMIT 1", **known, **keys, **names)
    return offer_from(row) if row else None


def shape_key(one: Offer | Shape) -> tuple[object, ...]:
    """Return the key that all offers of one shape share."""
    doubtful = one.doubtful if isinstance(one, Shape) else any(flag in one.flags for flag in DOUBTFUL_PRICE)
    return *_shape_fields(one), doubtful


def update_shapes(tx: Transaction, name: str) -> None:
    """Compute the shapes of a source from its offers."""
    tx.run("DELETE FROM offer_shape WHERE source = :name", name=name)
    tx.run(
        f"INSERT INTO offer_shape (source, {_SHAPE_LIST}, doubtful, price_micros_per_month, offers)"
        f" SELECT source, {_SHAPE_LIST}, {_DOUBTFUL}, MIN(price_micros_per_month), COUNT(*) FROM offer"
        f" WHERE source = :name AND {IS_WITH_GPU} GROUP BY source, {_SHAPE_LIST}, {_DOUBTFUL}",
        name=name,
    )


def _merged(of_sources: Iterable[Shape]) -> list[Shape]:
    """Merge equal shapes of several sources. SQL would have to sort by sixteen columns, which is slower."""
    found: dict[tuple[object, ...], Shape] = {}
    for shape in of_sources:
        key = shape_key(shape)
        other = found.setdefault(key, shape)
        if other is not shape:
            prices = [
                each.price_micros_per_month
                for each in (other, shape)
                if each.price_micros_per_month is not None
            ]
            found[key] = replace(
                other,
                price_micros_per_month=min(prices, default=None),
                offers=other.offers + shape.offers,
            )
    return list(found.values())


def _shape_from(row: Row) -> Shape:
    fields: list[Any] = [*row]
    for at in (_DOUBTFUL_AT, -1):
        fields[at] = bool(fields[at])
    return Shape(*fields)
