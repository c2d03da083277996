"""All offers in memory, for a process that lives longer than one command: the same questions in under a millisecond.

A million offers are a few thousand shapes, places, terms, dates and remarks, combined: each of these is kept once, and
a row is five small numbers, an id and a price. A filter is decided on the few distinct values and then looked up
for the rows, which lie in the order of price. Numbers come out as `store.search` and `rules.matches` would give them.

The index is a value: it is built from one state of the offers, for the rates of one day, and never changes.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from typing import Any, Final, TypeVar

import msgspec
import numpy as np
import numpy.typing as npt

from teraflock.base.exchange import Rates
from teraflock.base.money import Price
from teraflock.offer.model import Basis, Kind, Mode, Offer, Outcome, Query, Standing
from teraflock.offer.rules import first_day, limit_per_month, place_of, sort_key, usable_ram, weights

Mask = npt.NDArray[np.bool_]
Numbers = npt.NDArray[Any]
T = TypeVar("T")

CLUSTER: Final = 1e-12
"""Prices in different currencies nearer than this, relatively, are compared again in exact integers."""

_RANKS: Final = {"priced": 0, "unknown": 2, "refused": 3}


class _Shape(msgspec.Struct, frozen=True):
    source: str
    provider: str
    instance_type: str
    kind: Kind
    gpu: str
    gpu_name: str
    gpu_count: int | None
    gpu_share: float
    gpu_memory_bytes: int | None
    gpu_tflops: float | None
    vcpus: float | None
    cpu: str
    ram_bytes: int | None
    ram_usable: int | None
    disk_gb: float | None
    network_gbps: float | None


class _Terms(msgspec.Struct, frozen=True):
    mode: Mode | None
    term_months: int | None
    standing: Standing
    quoted_per: Any
    basis: Basis
    currency: str


class _Place(msgspec.Struct, frozen=True):
    region: str
    zone: str


class _Dates(msgspec.Struct, frozen=True):
    since: str
    as_of: str
    until: str


class _Words(msgspec.Struct, frozen=True):
    flags: tuple[str, ...]
    note: str
    cited: str


class _Distinct:
    """Values kept once each, numbered in the order in which they came."""

    def __init__(self) -> None:
        self.values: list[Any] = []
        self._codes: dict[Any, int] = {}

    def code(self, value: Any) -> int:
        code = self._codes.get(value)
        if code is None:
            code = self._codes[value] = len(self.values)
            self.values.append(value)
        return code

    def forget_codes(self) -> None:
        self._codes.clear()


class OfferIndex:
    def __init__(self, offers: Iterable[Offer], rates: Rates, on: date) -> None:
        self._rates = rates
        self._on = on
        self._weights = weights(rates, on)
        self._read(offers)
        self._sort()
        self._describe()

    def __len__(self) -> int:
        return len(self._ids)

    def search(self, query: Query, *, limit: int) -> tuple[Offer, ...]:
        """The first `limit` offers that fit, in the order of `rules.sort_key`."""
        rows = self._fitting(query)
        chosen = self._first(rows, query, limit)
        key = sort_key(query, self._weights)
        return tuple(sorted((self._offer(int(row)) for row in chosen), key=key)[:limit])

    def outcome(self, query: Query) -> Outcome:
        """How many fit and how old their prices are."""
        rows = self._fitting(query)
        days = [
            self._dates.values[code].as_of for code in np.flatnonzero(np.bincount(self._date_codes[rows]))
        ]
        known = [day for day in days if day]
        return Outcome(
            matched=len(rows), newest=max(days, default=""), oldest=min(known, default=""), left_out=()
        )

    # --- building -----------------------------------------------------------------------------------------------

    def _read(self, offers: Iterable[Offer]) -> None:
        from array import array

        ids, prices, quoted = array("q"), array("q"), array("q")
        codes = [array("I") for _ in range(5)]
        self._shapes, self._places, self._terms, self._dates, self._remarks = (_Distinct() for _ in range(5))
        distinct = (self._shapes, self._places, self._terms, self._dates, self._remarks)
        for offer in offers:
            ids.append(offer.id)
            prices.append(-1 if offer.price_micros_per_month is None else offer.price_micros_per_month)
            quoted.append(-1 if offer.quoted is None else offer.quoted.micros)
            for column, table, value in zip(codes, distinct, _parts(offer), strict=True):
                column.append(table.code(value))
        self._ids, self._prices, self._quoted = (
            np.frombuffer(column, np.int64) for column in (ids, prices, quoted)
        )
        self._shape_codes, self._place_codes, self._term_codes, self._date_codes, self._remark_codes = (
            _narrowed(column, len(table.values)) for column, table in zip(codes, distinct, strict=True)
        )
        for table in distinct:
            table.forget_codes()

    def _sort(self) -> None:
        """Put the rows into the order of `sort_key` for `--sort price`, but for near-ties between currencies."""
        terms = self._terms.values
        ranks = np.array([_RANKS[term.standing] for term in terms], np.int8)[self._term_codes]
        weight_max = max(self._weights.values())
        weight = np.array([self._weights.get(term.currency, 0) / weight_max for term in terms])
        self._values = np.where(ranks == 0, self._prices * weight[self._term_codes], 0.0)
        shape_order = _places_in_order(
            [(shape.provider, shape.instance_type) for shape in self._shapes.values]
        )
        place_order = _places_in_order([(place.region, place.zone) for place in self._places.values])
        order = np.lexsort(
            (
                self._ids,
                place_order[self._place_codes],
                shape_order[self._shape_codes],
                self._values,
                ranks,
            )
        )
        for name in ("_ids", "_prices", "_quoted", "_values", "_shape_codes", "_place_codes", "_term_codes",
                     "_date_codes", "_remark_codes"):  # fmt: skip
            setattr(self, name, getattr(self, name)[order])

    def _describe(self) -> None:
        """What filters ask of the distinct values, as arrays, and where the rows of each card lie."""
        shapes: Sequence[_Shape] = self._shapes.values
        self._gpu_numbers, gpu_of = _numbered(shape.gpu for shape in shapes)
        self._provider_numbers, self._provider_of = _numbered(shape.provider for shape in shapes)
        self._source_numbers, self._source_of = _numbered(shape.source for shape in shapes)
        self._kind_numbers, kind_of = _numbered(shape.kind for shape in shapes)
        self._count = _figures(shape.gpu_count for shape in shapes)
        self._memory = _figures(shape.gpu_memory_bytes for shape in shapes)
        self._tflops = _figures(shape.gpu_tflops for shape in shapes)
        self._vcpus = _figures(shape.vcpus for shape in shapes)
        self._ram = _figures(shape.ram_usable for shape in shapes)
        self._rows_of_gpu = _rows_by(gpu_of[self._shape_codes], len(self._gpu_numbers))
        self._rows_of_kind = _rows_by(kind_of[self._shape_codes], len(self._kind_numbers))
        self._folded = [place_of(Offer(source="", provider="", kind="none", standing="unknown", region=place.region,
                                       zone=place.zone)) for place in self._places.values]  # fmt: skip
        self._currencies = {term.currency for term in self._terms.values if term.standing == "priced"}

    # --- asking -------------------------------------------------------------------------------------------------

    def _fitting(self, query: Query) -> Numbers:
        """The rows that fit, in the order in which they lie."""
        numbers, by = (
            (self._gpu_numbers, self._rows_of_gpu) if query.gpus else (self._kind_numbers, self._rows_of_kind)
        )
        names: Sequence[str] = query.gpus or query.kinds
        lists = [by[numbers[name]] for name in dict.fromkeys(names) if name in numbers]
        if not lists:
            return np.empty(0, np.uint32)
        rows = lists[0] if len(lists) == 1 else np.sort(np.concatenate(lists))
        shapes = self._fitting_shapes(query)
        if shapes is not None:
            rows = rows[shapes[self._shape_codes[rows]]]
        if query.regions:
            wanted = [region.casefold() for region in query.regions]
            places = np.array(
                [any(region in folded for region in wanted) for folded in self._folded], np.bool_
            )
            rows = rows[places[self._place_codes[rows]]]
        terms = self._fitting_terms(query)
        if not terms.all():
            rows = rows[terms[self._term_codes[rows]]]
        if query.price_max is not None:
            limits = np.array([self._limit(query, term) for term in self._terms.values])
            rows = rows[self._prices[rows] <= limits[self._term_codes[rows]]]
        if query.as_of is not None:
            day = query.as_of.isoformat()
            held = np.array(
                [
                    first_day(dates.since) <= day and (not dates.until or day < first_day(dates.until))
                    for dates in self._dates.values
                ],
                np.bool_,
            )
            rows = rows[held[self._date_codes[rows]]]
        return rows

    def _fitting_shapes(self, query: Query) -> Mask | None:
        """Which shapes pass the filters on them; `None` if there is no such filter."""
        masks = []
        for names, numbers, of in (
            (query.providers, self._provider_numbers, self._provider_of),
            (query.sources, self._source_numbers, self._source_of),
        ):
            if names:
                masks.append(np.isin(of, [numbers.get(name, -1) for name in names]))
        for least, figures in (
            (query.count_min, self._count),
            (query.memory_bytes_min, self._memory),
            (query.memory_total_bytes_min, self._memory * self._count),
            (query.vcpus_min, self._vcpus),
            (query.ram_bytes_min, self._ram),
        ):
            if least is not None:
                masks.append(figures >= least)  # false where the figure is not stated (NaN)
        if query.count_max is not None:
            masks.append(self._count <= query.count_max)
        if not masks:
            return None
        fitting: Mask = np.logical_and.reduce(masks)
        return fitting

    def _fitting_terms(self, query: Query) -> Mask:
        return np.array(
            [
                (not query.modes or term.mode in query.modes)
                and (query.refused or term.standing != "refused")
                for term in self._terms.values
            ],
            np.bool_,
        )

    def _limit(self, query: Query, term: _Terms) -> int:
        if term.standing != "priced" or query.price_max is None:
            return -2  # below every price, and below the -1 of those that have none
        return limit_per_month(query.price_max, term.currency, self._rates, self._on)

    def _first(self, rows: Numbers, query: Query, limit: int) -> Numbers:
        """Rows among which the first `limit` surely are."""
        if query.sort == "price":
            return rows[: self._end(self._values[rows], limit)]
        units = {
            "price-per-gpu": self._count,
            "price-per-tflops": self._tflops * self._count,
            "price-per-gb": self._memory * self._count,
        }[query.sort][self._shape_codes[rows]]
        priced = np.array([term.standing == "priced" for term in self._terms.values], np.bool_)[
            self._term_codes[rows]
        ]
        measurable = priced & (units > 0)
        values = self._values[rows][measurable] / units[measurable]
        if len(values) < limit:
            return rows
        edge = np.partition(values, limit - 1)[limit - 1]
        first: Numbers = rows[measurable][values <= edge * (1 + CLUSTER)]
        return first

    def _end(self, values: Numbers, limit: int) -> int:
        """How many rows must be looked at for the first `limit`: more where currencies nearly tie at the edge."""
        if len(self._currencies) < 2 or limit >= len(values):
            return limit
        priced = values[: _unpriced_from(values)]
        return max(limit, int(np.searchsorted(priced, values[limit - 1] * (1 + CLUSTER), "right")))

    def _offer(self, row: int) -> Offer:
        shape: _Shape = self._shapes.values[self._shape_codes[row]]
        place: _Place = self._places.values[self._place_codes[row]]
        terms: _Terms = self._terms.values[self._term_codes[row]]
        dates: _Dates = self._dates.values[self._date_codes[row]]
        words: _Words = self._remarks.values[self._remark_codes[row]]
        price, quoted = int(self._prices[row]), int(self._quoted[row])
        return Offer(
            id=int(self._ids[row]), source=shape.source, cited=words.cited, provider=shape.provider,
            region=place.region, zone=place.zone, instance_type=shape.instance_type, kind=shape.kind, gpu=shape.gpu,
            gpu_name=shape.gpu_name, gpu_count=shape.gpu_count, gpu_share=shape.gpu_share,
            gpu_memory_bytes=shape.gpu_memory_bytes,
            gpu_tflops=shape.gpu_tflops, vcpus=shape.vcpus, cpu=shape.cpu, ram_bytes=shape.ram_bytes,
            disk_gb=shape.disk_gb, network_gbps=shape.network_gbps, mode=terms.mode, term_months=terms.term_months,
            standing=terms.standing, basis=terms.basis, currency=terms.currency, since=dates.since, as_of=dates.as_of,
            until=dates.until, flags=words.flags, note=words.note,
            quoted=None if quoted < 0 else Price(quoted, terms.currency, terms.quoted_per),
            price_micros_per_month=None if price < 0 else price,
        )  # fmt: skip


def _parts(offer: Offer) -> tuple[_Shape, _Place, _Terms, _Dates, _Words]:
    return (
        _Shape(
            offer.source, offer.provider, offer.instance_type, offer.kind, offer.gpu, offer.gpu_name, offer.gpu_count,
            offer.gpu_share, offer.gpu_memory_bytes, offer.gpu_tflops, offer.vcpus, offer.cpu, offer.ram_bytes,
            usable_ram(offer), offer.disk_gb, offer.network_gbps,
        ),
        _Place(offer.region, offer.zone),
        _Terms(
            offer.mode, offer.term_months, offer.standing, offer.quoted.per if offer.quoted else None, offer.basis,
            offer.currency,
        ),
        _Dates(offer.since, offer.as_of, offer.until),
        _Words(offer.flags, offer.note, offer.cited),
    )  # fmt: skip


def _narrowed(codes: Any, distinct: int) -> Numbers:
    """The codes in as few bytes as hold them."""
    narrow: Numbers = np.frombuffer(codes, np.uint32).astype(np.min_scalar_type(max(0, distinct - 1)))
    return narrow


def _numbered(names: Iterable[str]) -> tuple[Mapping[str, int], Numbers]:
    table = _Distinct()
    codes = np.array([table.code(name) for name in names], np.int32)
    return {name: number for number, name in enumerate(table.values)}, codes


def _figures(values: Iterable[float | None]) -> npt.NDArray[np.float64]:
    return np.array([np.nan if value is None else value for value in values], np.float64)


def _rows_by(numbers: Numbers, count: int) -> list[Numbers]:
    """For each number the rows that bear it, in order."""
    order = np.argsort(numbers, kind="stable").astype(np.uint32)
    edges = np.searchsorted(numbers[order], np.arange(count + 1))
    return [order[edges[i] : edges[i + 1]] for i in range(count)]


def _places_in_order(values: Sequence[tuple[str, ...]]) -> Numbers:
    """For each value its place when all are sorted; equal ones share it."""
    places = {value: place for place, value in enumerate(sorted(set(values)))}
    return np.array([places[value] for value in values], np.int32)


def _unpriced_from(values: Numbers) -> int:
    """Where the priced rows end: unpriced ones bear the value zero, behind all that rises."""
    falls = np.flatnonzero(np.diff(values) < 0)
    return int(falls[0]) + 1 if len(falls) else len(values)
