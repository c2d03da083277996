"""Search offers with SQL.

Invariants: rows have the order of `rules.sort_key` and are read lazily; filters mean the same as in `rules.matches`.
"""

import heapq
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date
from itertools import chain, groupby
from typing import Final, NamedTuple

import msgspec
from msgspec.structs import replace

from teraflock.base.exchange import Rates
from teraflock.catalog.places import NO_FILTER
from teraflock.offer.model import SUSPECT_RAM, GpuPart, Offer, Query, Removal
from teraflock.offer.place.store import in_places, places
from teraflock.offer.rules import (
    FIGURE_SORTS,
    SAME_SHARE,
    figures_of_cards,
    limit_per_month,
    only_kinds,
    shows_outdated,
    sort_key,
    weights,
)
from teraflock.offer.source.store import known_currencies
from teraflock.offer.store import LIST, offer_from
from teraflock.storage.database import Transaction

_CURRENT_AND_PAST: Final = f"(SELECT {LIST} FROM offer UNION ALL SELECT {LIST} FROM offer_past)"
_UNITS: Final = {
    "price-per-gpu": "gpu_count",
    "price-per-tflops": "(gpu_tflops * gpu_count)",
    "price-per-gb": "(gpu_memory_bytes * gpu_count)",
    **dict.fromkeys(FIGURE_SORTS, "(gpu_share * gpu_count)"),
}


class OfferFilter(NamedTuple):
    """One filter of a query as SQL. `unknown` is the condition that the offer lacks the figure."""

    option: str
    sql: str
    values: Mapping[str, object]
    unknown: str = ""
    unknown_values: Mapping[str, object] = {}


class Summary(msgspec.Struct, frozen=True):
    matched: int
    newest: str
    oldest: str
    refused: int
    slices: int
    outdated: int
    """Offers that match but are not shown, each counted once."""


def search(tx: Transaction, query: Query, rates: Rates, on: date) -> Iterator[Offer]:
    """Yield all matching offers in order. Reads lazily: taking ten offers reads little more than ten rows."""
    weight = weights(rates, on)
    currencies = [currency for currency in known_currencies(tx) if currency in weight]
    filters = [*filters_of(tx, query, rates, on, currencies), *_shown(query)]
    key = sort_key(query, weight)
    unit, measured = _UNITS.get(query.sort), query
    if query.sort in FIGURE_SORTS:
        assert query.gpus, "a sort by a figure of cards needs cards: their streams have different factors"
        figures = figures_of_cards(query.sort)
        measured = replace(query, gpus=tuple(gpu for gpu in query.gpus if gpu in figures))
    measure = (
        f"CAST(price_micros_per_month AS DOUBLE PRECISION) / {unit}" if unit else "price_micros_per_month"
    )

    def ranked(condition: str, by_currency: bool) -> Iterator[Offer]:
        streams = [
            _stream(
                tx,
                query,
                [*filters, leading, OfferFilter("", condition, {})],
                measure if by_currency else "id",
            )
            for leading in _leading(measured if by_currency else query, currencies if by_currency else [])
        ]
        if not by_currency:
            return iter(sorted(chain.from_iterable(streams), key=key))
        merged = heapq.merge(*streams, key=lambda offer: key(offer)[1])
        ties = (sorted(block, key=key) for _, block in groupby(merged, key=lambda offer: key(offer)[1]))
        return chain.from_iterable(ties)

    if measured.gpus or not query.gpus:
        yield from ranked(
            f"standing = 'priced' AND {unit} > 0" if unit else "standing = 'priced'", by_currency=True
        )
    if unit:
        yield from ranked(_unmeasured(unit, query, measured), by_currency=False)
    yield from ranked("standing = 'unknown'", by_currency=False)
    if query.refused:
        yield from ranked("standing = 'refused'", by_currency=False)


def _unmeasured(unit: str, query: Query, measured: Query) -> str:
    """Return the condition for priced offers without the measure of the sort."""
    lacking = f"{unit} IS NULL OR {unit} <= 0"
    without = [gpu for gpu in query.gpus if gpu not in measured.gpus]
    if without:  # ids of the catalog, never text of a user
        lacking += f" OR gpu IN ({', '.join(repr(gpu) for gpu in without)})"
    return f"standing = 'priced' AND ({lacking})"


def summarise(tx: Transaction, query: Query, rates: Rates, on: date) -> Summary:
    """Count the matching offers and those that are only hidden, and find the age of the prices."""
    table, number = _counted_from(query)
    where, values = where_of([*filters_of(tx, query, rates, on, known_currencies(tx)), *_kind_filter(query)])
    part = "CASE WHEN gpu_share < 1 THEN 1 ELSE 0 END"
    rows = tx.all(
        f"SELECT standing, {part}, outdated, CAST({number} AS BIGINT), MAX(as_of), MIN(NULLIF(as_of, ''))"
        f" FROM {table} AS offer WHERE {where} GROUP BY standing, {part}, outdated",
        **values,
    )
    fitting, counts = [], dict.fromkeys(("slices", "outdated", "refused"), 0)
    for row in rows:
        if row[1] and not query.slices:
            counts["slices"] += row[3]
        elif row[2] and not shows_outdated(query):
            counts["outdated"] += row[3]
        elif row[0] == "refused" and not query.refused:
            counts["refused"] += row[3]
        else:
            fitting.append(row)
    return Summary(
        matched=sum(row[3] for row in fitting),
        newest=max((row[4] for row in fitting), default=""),
        oldest=min((row[5] for row in fitting if row[5]), default=""),
        **counts,
    )


def unstated(tx: Transaction, query: Query, rates: Rates, on: date) -> list[tuple[str, int]]:
    """Count, for each filter on a figure, the offers that pass all other filters but lack the figure."""
    filters = [*filters_of(tx, query, rates, on, known_currencies(tx)), *_kind_filter(query), *_shown(query)]
    counts = []
    for one in filters:
        if one.unknown:
            others = [each for each in filters if each is not one]
            lacking = OfferFilter("", f"({one.unknown})", one.unknown_values)
            counts.append((one.option, _count(tx, query, [*others, lacking])))
    return counts


def without_gpu(tx: Transaction, query: Query, rates: Rates, on: date) -> int:
    """Count the offers without a GPU that pass the other filters."""
    return summarise(tx, replace(query, gpus=(), kinds=("none",), refused=True), rates, on).matched


def removal(tx: Transaction, query: Query, rates: Rates, on: date) -> Removal | None:
    """Return the first filter after which no offers are left."""
    filters = [*_kind_filter(query), *filters_of(tx, query, rates, on, known_currencies(tx)), *_shown(query)]
    before = _count(tx, query, [])
    for end, one in enumerate(filters, start=1):
        after = _count(tx, query, filters[:end])
        if not after:
            return Removal(one.option, before)
        before = after
    return None


class FirstSeen(NamedTuple):
    """A price, and the day on which it was first seen."""

    since: str
    currency: str
    micros_per_month: int
    gpu_count: int


def priced_ever(tx: Transaction, query: Query, rates: Rates, on: date) -> Iterator[FirstSeen]:
    """Yield the prices of all matching offers with GPUs, including past ones."""
    filters = [
        *filters_of(tx, query, rates, on, known_currencies(tx), ever=True),
        *_kind_filter(query),
        *_shown(replace(query, outdated=True)),
        OfferFilter("", "standing = 'priced' AND since <> '' AND gpu_count > 0", {}),
    ]
    where, values = where_of(filters)
    sql = (
        "SELECT since, currency, price_micros_per_month, gpu_count"
        f" FROM {_CURRENT_AND_PAST} AS offer WHERE {where}"
    )
    return map(FirstSeen._make, tx.each(sql, **values))


# --- filters -------------------------------------------------------------------------------------------------------


def filters_of(
    tx: Transaction, query: Query, rates: Rates, on: date, currencies: Sequence[str], *, ever: bool = False
) -> list[OfferFilter]:
    """Return all filters except the one on kind or card, which is the first column of the index.

    `ever` says that past offers are searched too.
    """
    filters = [
        *one_of_column("--provider", "provider", query.providers),
        *_place_filter(tx, query, ever=ever or query.as_of is not None),
        *one_of_column("--mode", "mode", query.modes),
        *one_of_column("--source", "source", query.sources),
        *_bound("--count", "gpu_count >=", "count_min", query.count_min),
        *_bound("--count", "gpu_count <=", "count_max", query.count_max),
        *_bound("--memory-min", "gpu_memory_bytes >=", "memory_bytes_min", query.memory_bytes_min),
        *_bound(
            "--memory-total-min",
            "gpu_memory_bytes * gpu_count >=",
            "memory_total_min",
            query.memory_total_bytes_min,
        ),
        *_bound("--vcpu-min", "vcpus >=", "vcpus_min", query.vcpus_min),
        *_ram(query.ram_bytes_min),
        *_newer_than(query.newer_than),
        *_part_filter(query.parts),
    ]
    if query.as_of:
        day = query.as_of.isoformat()
        # Compared as text, `2019` and `2019-07` sort like their first days.
        held = "since <= :day AND (until = '' OR until > :day)"
        filters.append(OfferFilter("--as-of", held, {"day": day}))
    if query.price_max:
        limits = {f"limit_{c.lower()}": limit_per_month(query.price_max, c, rates, on) for c in currencies}
        within = " OR ".join(
            f"(currency = '{c}' AND price_micros_per_month <= :limit_{c.lower()})" for c in currencies
        )
        filters.append(
            OfferFilter("--price-max", f"({within or '1 = 0'})", limits, "price_micros_per_month IS NULL")
        )
    return filters


def _shown(query: Query) -> Iterator[OfferFilter]:
    """Return the filters that hide parts of cards and outdated prices by default."""
    if not query.slices:
        yield OfferFilter("--slices", "gpu_share >= 1", {})
    if not shows_outdated(query):
        yield OfferFilter("--all", "outdated = 0", {})


def one_of_column(option: str, column: str, names: Sequence[str]) -> Iterator[OfferFilter]:
    if names:
        values = {f"{column}_{i}": name for i, name in enumerate(names)}
        yield OfferFilter(option, f"{column} IN ({', '.join(':' + key for key in values)})", values)


def _place_filter(tx: Transaction, query: Query, *, ever: bool) -> Iterator[OfferFilter]:
    if query.places:
        found = places(tx, query.places, ever=ever)
        option = "--region" if query.places.regions else "--country" if query.places.countries else "--not-in"
        yield OfferFilter(option, *in_places("place", found.inside), *in_places("unplaced", found.unknown))


def _part_filter(parts: Sequence[GpuPart]) -> Iterator[OfferFilter]:
    if parts:
        values: dict[str, object] = {}
        for i, part in enumerate(parts):
            values |= {f"share_{i}": part.share}
            values |= dict(zip((f"least_{i}", f"most_{i}"), part.memory_about, strict=True))
        same = " OR ".join(
            f"(ABS(gpu_share - :share_{i}) < {SAME_SHARE} AND gpu_memory_bytes BETWEEN :least_{i} AND :most_{i})"
            for i in range(len(parts))
        )
        yield OfferFilter("--gpu", f"({same})", values)


def _newer_than(day: str) -> Iterator[OfferFilter]:
    if day:
        yield OfferFilter("--newer-than", "as_of >= :newer_than", {"newer_than": day}, "as_of = ''")


def _bound(option: str, comparison: str, name: str, value: float | None) -> Iterator[OfferFilter]:
    if value is not None:
        column = comparison.rsplit(" ", 1)[0]
        yield OfferFilter(option, f"{comparison} :{name}", {name: value}, f"({column}) IS NULL")


def _ram(least: int | None) -> Iterator[OfferFilter]:
    if least is not None:
        stated = f"ram_bytes IS NOT NULL AND flags NOT LIKE '%{SUSPECT_RAM}%'"
        known = f"ram_bytes >= :ram_bytes_min AND {stated}"
        yield OfferFilter("--ram-min", known, {"ram_bytes_min": least}, f"NOT ({stated})")


def _kind_filter(query: Query) -> list[OfferFilter]:
    if query.gpus:
        (among,) = one_of_column("--gpu", "gpu", query.gpus)
        return [among._replace(sql=f"gpu <> '' AND {among.sql}")]
    return list(one_of_column("--count", "kind", query.kinds))


def _leading(query: Query, currencies: Sequence[str]) -> list[OfferFilter]:
    """Return one filter for each range of the index to read: a card or kind in one currency."""
    # `gpu <> ''` is redundant, but SQLite uses the partial index only with it.
    leads, names = (
        ("gpu <> '' AND gpu = :leading", query.gpus) if query.gpus else ("kind = :leading", query.kinds)
    )
    if not currencies:
        return [OfferFilter("", leads, {"leading": name}) for name in names]
    return [
        OfferFilter("", f"{leads} AND currency = :currency", {"leading": name, "currency": currency})
        for name in names
        for currency in currencies
    ]


# --- statements ----------------------------------------------------------------------------------------------------


def _stream(tx: Transaction, query: Query, filters: Iterable[OfferFilter], order: str) -> Iterator[Offer]:
    where, values = where_of(filters)
    sql = f"SELECT {LIST} FROM {_from(query)} AS offer WHERE {where} ORDER BY {order}"
    return map(offer_from, tx.each(sql, **values))


def _count(tx: Transaction, query: Query, filters: Iterable[OfferFilter]) -> int:
    where, values = where_of(filters)
    table, number = _counted_from(query)
    row = tx.one(
        f"SELECT CAST(COALESCE({number}, 0) AS BIGINT) FROM {table} AS offer WHERE {where}", **values
    )
    return int(row[0]) if row else 0


def _counted_from(query: Query) -> tuple[str, str]:
    """Return the table and the expression that count offers. Without other filters, the stored counts are enough."""
    counted = only_kinds(replace(query, sources=(), places=NO_FILTER))
    return ("offer_count", "SUM(offers)") if counted else (_from(query), "COUNT(*)")


def _from(query: Query) -> str:
    return _CURRENT_AND_PAST if query.as_of else "offer"


def where_of(filters: Iterable[OfferFilter]) -> tuple[str, dict[str, object]]:
    values: dict[str, object] = {}
    texts = []
    for one in filters:
        texts.append(one.sql)
        values.update(one.values)
    return " AND ".join(texts) or "1 = 1", values
