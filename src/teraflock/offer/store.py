"""All SQL about offers, the same text for SQLite and PostgreSQL.

What holds:
- the rows of `offer` with one source all bear that source's `import_number`: an import is seen whole or not at all;
- a price that a later import changed or dropped stands in `offer_past`, with the day from which it no longer held;
- rows come out in the order of `rules.sort_key`, read only as far as the caller reads.
"""

import heapq
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date
from itertools import chain, groupby
from operator import attrgetter
from sys import intern
from typing import Any, Final, NamedTuple

import msgspec
from msgspec.structs import astuple, replace

from teraflock.base.exchange import Rates
from teraflock.base.money import Price
from teraflock.offer.model import DOUBTFUL_PRICE, SUSPECT_RAM, WITH_GPU, Offer, Query, Removal, Shape
from teraflock.offer.rules import limit_per_month, only_kinds, place_of, sort_key, weights
from teraflock.storage.database import Row, Transaction

COLUMNS: Final = (
    "import_number", "place", "source", "provider", "kind", "standing", "id", "cited", "region", "zone",
    "instance_type", "gpu", "gpu_name", "gpu_count", "gpu_share", "gpu_memory_bytes", "gpu_tflops", "vcpus", "cpu",
    "ram_bytes", "disk_gb", "network_gbps", "mode", "term_months", "quoted_micros", "quoted_per", "basis", "currency",
    "price_micros_per_month", "since", "as_of", "until", "flags", "note",
)  # fmt: skip
"""Two of the store's own, then the fields of `Offer` in their order, `quoted` as two."""
_LIST: Final = ", ".join(COLUMNS)
_INSERT: Final = f"INSERT INTO offer ({_LIST}) VALUES ({', '.join(':' + name for name in COLUMNS)})"
_UNTIL: Final = (
    "COALESCE(NULLIF(new.since, ''), :until)"  # the day from which the next price holds, if there is one
)
_OLD_LIST: Final = ", ".join(_UNTIL if name == "until" else f"old.{name}" for name in COLUMNS)
_STANDING_AND_PAST: Final = f"(SELECT {_LIST} FROM offer UNION ALL SELECT {_LIST} FROM offer_past)"

BATCH_ROWS: Final = (
    2_000  # rows handed to the engine at a time: bounds memory, and is past the point of speed
)

_UNITS: Final = {
    "price-per-gpu": "gpu_count",
    "price-per-tflops": "(gpu_tflops * gpu_count)",
    "price-per-gb": "(gpu_memory_bytes * gpu_count)",
}


_SHAPE_COLUMNS: Final = (
    "provider", "instance_type", "kind", "gpu", "gpu_name", "gpu_count", "gpu_share", "gpu_memory_bytes", "vcpus",
    "ram_bytes", "mode", "term_months", "standing", "currency",
)  # fmt: skip
"""The first fields of `Shape`, in their order."""
_SHAPE_LIST: Final = ", ".join(_SHAPE_COLUMNS)
_DOUBTFUL_AT: Final = len(_SHAPE_COLUMNS)
_DOUBTED: Final = " OR ".join(f"flags LIKE '%{flag}%'" for flag in DOUBTFUL_PRICE)
_DOUBTFUL: Final = f"CASE WHEN {_DOUBTED} THEN 1 ELSE 0 END"


_WITH_GPU: Final = "kind IN ('" + "', '".join(WITH_GPU) + "')"


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """Where offers come from: one name, replaced as a whole by each import."""

    name: str
    layout: str
    import_number: int
    place: str
    """The path or URL it was last read from."""
    checksum: str
    as_of: str
    imported_at: str
    offers: int
    currencies: str
    url: str = ""
    etag: str = ""
    last_modified: str = ""


class Filter(NamedTuple):
    """One filter of a question as SQL; `known` says that the offer states the figure at all."""

    option: str
    sql: str
    values: Mapping[str, object]
    known: str = ""


class Summary(msgspec.Struct, frozen=True):
    matched: int
    newest: str
    oldest: str
    refused: int


# --- reading -------------------------------------------------------------------------------------------------------


def search(tx: Transaction, query: Query, rates: Rates, on: date) -> Iterator[Offer]:
    """All offers that fit, in order. Read lazily: whoever stops after ten has read little more than ten."""
    weight = weights(rates, on)
    currencies = [currency for currency in _currencies(tx) if currency in weight]
    filters = filters_of(query, rates, on, currencies)
    key = sort_key(query, weight)
    unit = _UNITS.get(query.sort)
    measure = (
        f"CAST(price_micros_per_month AS DOUBLE PRECISION) / {unit}" if unit else "price_micros_per_month"
    )

    def ranked(condition: str, by_currency: bool) -> Iterator[Offer]:
        streams = [
            _stream(
                tx, query, [*filters, leading, Filter("", condition, {})], measure if by_currency else "id"
            )
            for leading in _leading(query, currencies if by_currency else [])
        ]
        if not by_currency:
            return iter(sorted(chain.from_iterable(streams), key=key))
        merged = heapq.merge(*streams, key=lambda offer: key(offer)[1])
        ties = (sorted(block, key=key) for _, block in groupby(merged, key=lambda offer: key(offer)[1]))
        return chain.from_iterable(ties)

    yield from ranked(
        f"standing = 'priced' AND {unit} > 0" if unit else "standing = 'priced'", by_currency=True
    )
    if unit:
        yield from ranked(f"standing = 'priced' AND ({unit} IS NULL OR {unit} <= 0)", by_currency=False)
    yield from ranked("standing = 'unknown'", by_currency=False)
    if query.refused:
        yield from ranked("standing = 'refused'", by_currency=False)


def summarise(tx: Transaction, query: Query, rates: Rates, on: date) -> Summary:
    """How many fit, how old their prices are, and how many only their refused price keeps out."""
    counted = only_kinds(replace(query, sources=()))
    table, number = ("offer_count", "SUM(offers)") if counted else (_from(query), "COUNT(*)")
    where, values = _where([*filters_of(query, rates, on, _currencies(tx)), *_kind_filter(query)])
    rows = tx.all(
        f"SELECT standing, CAST({number} AS BIGINT), MAX(as_of), MIN(NULLIF(as_of, '')) FROM {table} AS offer"
        f" WHERE {where} GROUP BY standing",
        **values,
    )
    fitting = [row for row in rows if query.refused or row[0] != "refused"]
    return Summary(
        matched=sum(row[1] for row in fitting),
        newest=max((row[2] for row in fitting), default=""),
        oldest=min((row[3] for row in fitting if row[3]), default=""),
        refused=sum(row[1] for row in rows if row[0] == "refused"),
    )


def unstated(tx: Transaction, query: Query, rates: Rates, on: date) -> list[tuple[str, int]]:
    """For each filter on a figure: how many offers pass all others but do not state it."""
    filters = [*filters_of(query, rates, on, _currencies(tx)), *_kind_filter(query)]
    counts = []
    for one in filters:
        if one.known:
            others = [each for each in filters if each is not one]
            counts.append((one.option, _count(tx, query, [*others, Filter("", f"NOT ({one.known})", {})])))
    return counts


def without_gpu(tx: Transaction, query: Query, rates: Rates, on: date) -> int:
    """How many offers without any GPU pass the other filters."""
    return summarise(tx, replace(query, gpus=(), kinds=("none",), refused=True), rates, on).matched


def removal(tx: Transaction, query: Query, rates: Rates, on: date) -> Removal | None:
    """The first filter, in the order in which filters apply, that leaves nothing of what those before it left."""
    filters = [*_kind_filter(query), *filters_of(query, rates, on, _currencies(tx))]
    before = _count(tx, query, [])
    for end, one in enumerate(filters, start=1):
        after = _count(tx, query, filters[:end])
        if not after:
            return Removal(one.option, before)
        before = after
    return None


def providers(tx: Transaction) -> list[str]:
    return [row[0] for row in tx.all("SELECT DISTINCT provider FROM offer ORDER BY provider")]


def sources(tx: Transaction) -> list[Source]:
    rows = tx.all(f"SELECT {_SOURCE_LIST} FROM offer_source ORDER BY name")
    return [Source(**dict(zip(_SOURCE_COLUMNS, row, strict=True))) for row in rows]


def source(tx: Transaction, name: str) -> Source | None:
    row = tx.one(f"SELECT {_SOURCE_LIST} FROM offer_source WHERE name = :name", name=name)
    return Source(**dict(zip(_SOURCE_COLUMNS, row, strict=True))) if row else None


def shapes(tx: Transaction, regions: Sequence[str]) -> list[Shape]:
    """All offers with a GPU that stand in these regions, by what decides time and terms, each with its lowest price."""
    if not regions:
        rows = tx.all(
            f"SELECT {_SHAPE_LIST}, doubtful, price_micros_per_month, offers, as_of FROM offer_shape"
        )
        return _together(map(_shape_from, rows))
    where, values = _where([Filter("", _WITH_GPU, {}), *_places(regions)])
    rows = tx.all(
        f"SELECT {_SHAPE_LIST}, {_DOUBTFUL}, MIN(price_micros_per_month), COUNT(*), MAX(as_of)"
        f" FROM offer WHERE {where} GROUP BY {_SHAPE_LIST}, {_DOUBTFUL}",
        **values,
    )
    return list(map(_shape_from, rows))


def _together(of_sources: Iterable[Shape]) -> list[Shape]:
    """One shape where several sources have the same. Not in SQL, which would sort by sixteen columns for it."""
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
                as_of=max(other.as_of, shape.as_of),
            )
    return list(found.values())


def shape_key(one: Offer | Shape) -> tuple[object, ...]:
    """By what offers make up one shape."""
    doubtful = one.doubtful if isinstance(one, Shape) else any(flag in one.flags for flag in DOUBTFUL_PRICE)
    return *_shape_fields(one), doubtful


_shape_fields: Final = attrgetter(*_SHAPE_COLUMNS)


def with_gpu(tx: Transaction) -> Iterator[Offer]:
    """All offers that stand and have a GPU, in no order."""
    return map(_offer_from, tx.each(f"SELECT {_LIST} FROM offer WHERE {_WITH_GPU}"))


def without_any_gpu(tx: Transaction) -> int:
    row = tx.one("SELECT CAST(COALESCE(SUM(offers), 0) AS BIGINT) FROM offer_count WHERE kind = 'none'")
    return int(row[0]) if row else 0


def cheapest_of(tx: Transaction, shape: Shape, regions: Sequence[str]) -> Offer | None:
    """The cheapest offer of a shape; of equally cheap ones the first by id."""
    told = {name: getattr(shape, name) for name in (*_SHAPE_COLUMNS, "price_micros_per_month")}
    known = {name: value for name, value in told.items() if value is not None}
    same = " AND ".join(f"{name} = :{name}" if name in known else f"{name} IS NULL" for name in told)
    indexed = "gpu <> ''" if shape.gpu else "gpu = ''"  # said for SQLite, as in `_leading`
    where, values = _where([Filter("", f"{indexed} AND {same}", known), *_places(regions)])
    row = tx.one(f"SELECT {_LIST} FROM offer WHERE {where} ORDER BY id LIMIT 1", **values)
    return _offer_from(row) if row else None


def every(tx: Transaction) -> Iterator[Offer]:
    """All offers that stand, in no order. For the index, which sorts them itself."""
    return map(_offer_from, tx.each(f"SELECT {_LIST} FROM offer"))


def priced_ever(tx: Transaction, query: Query, rates: Rates, on: date) -> Iterator[Offer]:
    """All that fit and were priced at some time, superseded prices included. For the history."""
    filters = [
        *filters_of(query, rates, on, _currencies(tx)),
        *_kind_filter(query),
        Filter("", "standing = 'priced'", {}),
    ]
    where, values = _where(filters)
    sql = f"SELECT {_LIST} FROM {_STANDING_AND_PAST} AS offer WHERE {where}"
    return map(_offer_from, tx.each(sql, **values))


# --- the question as SQL -------------------------------------------------------------------------------------------


def filters_of(query: Query, rates: Rates, on: date, currencies: Sequence[str]) -> list[Filter]:
    """All filters but the one on kind or card, which leads the index, in the order in which a person gives them."""
    filters = [
        *_one_of("--provider", "provider", query.providers),
        *_places(query.regions),
        *_one_of("--mode", "mode", query.modes),
        *_one_of("--source", "source", query.sources),
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
    ]
    if query.as_of:
        day = query.as_of.isoformat()
        # `2019` and `2019-07` compare with a whole day as their first days would
        held = "since <= :day AND (until = '' OR until > :day)"
        filters.append(Filter("--as-of", held, {"day": day}))
    if query.price_max:
        limits = {f"limit_{c.lower()}": limit_per_month(query.price_max, c, rates, on) for c in currencies}
        within = " OR ".join(
            f"(currency = '{c}' AND price_micros_per_month <= :limit_{c.lower()})" for c in currencies
        )
        filters.append(
            Filter("--price-max", f"({within or '1 = 0'})", limits, "price_micros_per_month IS NOT NULL")
        )
    return filters


def _one_of(option: str, column: str, names: Sequence[str]) -> Iterator[Filter]:
    if names:
        values = {f"{column}_{i}": name for i, name in enumerate(names)}
        yield Filter(option, f"{column} IN ({', '.join(':' + key for key in values)})", values)


def _places(regions: Sequence[str]) -> Iterator[Filter]:
    if regions:
        values = {f"place_{i}": f"%{_literal(region.casefold())}%" for i, region in enumerate(regions)}
        found = " OR ".join(f"place LIKE :{key} ESCAPE '!'" for key in values)
        yield Filter("--region", f"({found})", values)


def _literal(text: str) -> str:
    """A text that LIKE takes as it stands."""
    return text.replace("!", "!!").replace("%", "!%").replace("_", "!_")


def _bound(option: str, comparison: str, name: str, value: float | None) -> Iterator[Filter]:
    if value is not None:
        column = comparison.rsplit(" ", 1)[0]
        yield Filter(option, f"{comparison} :{name}", {name: value}, f"{column} IS NOT NULL")


def _ram(least: int | None) -> Iterator[Filter]:
    if least is not None:
        stated = f"ram_bytes IS NOT NULL AND flags NOT LIKE '%{SUSPECT_RAM}%'"
        yield Filter(
            "--ram-min", f"ram_bytes >= :ram_bytes_min AND {stated}", {"ram_bytes_min": least}, stated
        )


def _kind_filter(query: Query) -> list[Filter]:
    if query.gpus:
        (among,) = _one_of("--gpu", "gpu", query.gpus)
        return [among._replace(sql=f"gpu <> '' AND {among.sql}")]
    return list(_one_of("--count", "kind", query.kinds))


def _leading(query: Query, currencies: Sequence[str]) -> list[Filter]:
    """One filter for each range of the index that must be read: a card or kind, in one currency."""
    # that no card has an empty name is said again, or SQLite does not see that the partial index holds them all
    leads, names = (
        ("gpu <> '' AND gpu = :leading", query.gpus) if query.gpus else ("kind = :leading", query.kinds)
    )
    if not currencies:
        return [Filter("", leads, {"leading": name}) for name in names]
    return [
        Filter("", f"{leads} AND currency = :currency", {"leading": name, "currency": currency})
        for name in names
        for currency in currencies
    ]


def _stream(tx: Transaction, query: Query, filters: Iterable[Filter], order: str) -> Iterator[Offer]:
    where, values = _where(filters)
    sql = f"SELECT {_LIST} FROM {_from(query)} AS offer WHERE {where} ORDER BY {order}"
    return map(_offer_from, tx.each(sql, **values))


def _count(tx: Transaction, query: Query, filters: Iterable[Filter]) -> int:
    where, values = _where(filters)
    row = tx.one(f"SELECT COUNT(*) FROM {_from(query)} AS offer WHERE {where}", **values)
    return int(row[0]) if row else 0


def _from(query: Query) -> str:
    return _STANDING_AND_PAST if query.as_of else "offer"


def _where(filters: Iterable[Filter]) -> tuple[str, dict[str, object]]:
    values: dict[str, object] = {}
    texts = []
    for one in filters:
        texts.append(one.sql)
        values.update(one.values)
    return " AND ".join(texts) or "1 = 1", values


def _currencies(tx: Transaction) -> list[str]:
    rows = tx.all("SELECT currencies FROM offer_source")
    return sorted({currency for (text,) in rows for currency in text.split()})


# --- writing -------------------------------------------------------------------------------------------------------


class Standing(msgspec.Struct, frozen=True, gc=False):
    """What an import must know of the offer it replaces. A hundred thousand are held, and no cycle among them."""

    price_micros_per_month: int | None
    currency: str
    standing: str
    since: str


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
        batch.append(_row_from(offer, id, since, import_number))
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
        f"INSERT INTO offer_past ({_LIST}) SELECT {_OLD_LIST} FROM offer AS old LEFT JOIN offer AS new"
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


def shape_anew(tx: Transaction, name: str) -> None:
    """Bring the shapes of a source in line with its offers."""
    tx.run("DELETE FROM offer_shape WHERE source = :name", name=name)
    tx.run(
        f"INSERT INTO offer_shape (source, {_SHAPE_LIST}, doubtful, price_micros_per_month, offers, as_of)"
        f" SELECT source, {_SHAPE_LIST}, {_DOUBTFUL}, MIN(price_micros_per_month), COUNT(*), MAX(as_of) FROM offer"
        f" WHERE source = :name AND {_WITH_GPU} GROUP BY source, {_SHAPE_LIST}, {_DOUBTFUL}",
        name=name,
    )


def put_source(tx: Transaction, source: Source) -> None:
    tx.run("DELETE FROM offer_source WHERE name = :name", name=source.name)
    tx.run(
        f"INSERT INTO offer_source ({_SOURCE_LIST}) VALUES ({', '.join(':' + name for name in _SOURCE_COLUMNS)})",
        **msgspec.structs.asdict(source),
    )


def next_import_number(tx: Transaction) -> int:
    row = tx.one("SELECT COALESCE(MAX(import_number), 0) + 1 FROM offer_source")
    return int(row[0]) if row else 1


_SOURCE_COLUMNS: Final = Source.__struct_fields__
_SOURCE_LIST: Final = ", ".join(_SOURCE_COLUMNS)


def _shape_from(row: Row) -> Shape:
    fields: list[Any] = [*row]
    fields[_DOUBTFUL_AT] = bool(fields[_DOUBTFUL_AT])
    return Shape(*fields)


# --- rows ----------------------------------------------------------------------------------------------------------


def _row_from(offer: Offer, id: int, since: str, import_number: int) -> Row:
    fields = astuple(offer)
    quoted = offer.quoted
    told = (quoted.micros, quoted.per) if quoted else (None, None)
    return (
        import_number, place_of(offer), *fields[:4], id, *fields[5:22], *told, *fields[23:26], since, *fields[27:29],
        " ".join(offer.flags), offer.note,
    )  # fmt: skip


def _offer_from(row: Row) -> Offer:
    quoted_micros, quoted_per, basis, currency = row[24:28]
    quoted = None if quoted_micros is None else Price(quoted_micros, currency, quoted_per)
    flags = tuple(row[32].split()) if row[32] else ()
    fields: list[Any] = [*row[2:24], quoted, basis, currency, *row[28:32], flags, row[33]]
    return Offer(*fields)
