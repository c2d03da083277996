"""All offers in memory, for a process that lives longer than one command: the same questions in under a millisecond.

A million offers are a few thousand shapes, places, terms, dates and remarks, combined: each of these is kept once, and
a row is five small numbers, an id and two prices. A filter is decided on the few distinct values and then looked up
for the rows, which lie in the order of price. Answers are those of `store.search` and `rules.matches`.

The index is a value: it is built from one state of the offers, for the rates of one day, and never changes.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from teraflock.base.exchange import Rates
from teraflock.base.money import Price
from teraflock.offer.model import Answer, Basis, Kind, Mode, Offer, Query, Standing
from teraflock.offer.rules import (
    first_day,
    limit_per_month,
    only_kinds,
    place_text,
    sort_key,
    usable_ram,
    weights,
)

Mask = npt.NDArray[np.bool_]
Numbers = npt.NDArray[Any]

CLUSTER: Final = 1e-12
"""Prices in different currencies nearer than this, relatively, are compared again in exact integers."""

_RANKS: Final = {"priced": 0, "unknown": 2, "refused": 3}


class _Shape(NamedTuple):
    """As in `Offer`, in its order, so that an offer is built of slices."""

    source: str
    provider: str
    kind: Kind
    instance_type: str
    gpu: str
    gpu_name: str
    gpu_count: int | None
    gpu_share: float
    gpu_memory_bytes: int | None
    gpu_tflops: float | None
    vcpus: float | None
    cpu: str
    ram_bytes: int | None
    disk_gb: float | None
    network_gbps: float | None
    ram_usable: int | None


class _Terms(NamedTuple):
    standing: Standing
    mode: Mode | None
    term_months: int | None
    quoted_per: Any
    basis: Basis
    currency: str


class _Place(NamedTuple):
    region: str
    zone: str


class _Dates(NamedTuple):
    since: str
    as_of: str
    until: str


class _Words(NamedTuple):
    cited: str
    flags: tuple[str, ...]
    note: str


class _Span(NamedTuple):
    """The dates of one card's or kind's rows, those with a refused price left out."""

    newest: str
    oldest: str


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

    def answer(self, query: Query, *, limit: int | None) -> Answer:
        """The first `limit` offers that fit, in the order of `rules.sort_key`, and what is known of all that fit."""
        lists = self._lists(query)
        if only_kinds(query):
            matched = sum(map(len, lists))
            span = self._span(_merged(lists)) if query.refused else self._span_of_all(query)
            # by price, the first of all are among the first of each list
            rows = _merged([each[:limit] for each in lists] if query.sort == "price" else lists)
        else:
            rows = self._fitting(_merged(lists), query)
            matched, span = len(rows), self._span(rows)
        offers = self._offers(self._first(rows, query, limit))
        if query.sort != "price":
            offers.sort(key=sort_key(query, self._weights))
        return Answer(
            offers=tuple(offers[:limit]), matched=matched, newest=span.newest, oldest=span.oldest, left_out=()
        )

    # --- building -----------------------------------------------------------------------------------------------

    def _read(self, offers: Iterable[Offer]) -> None:
        from array import array

        ids, prices, quoted = array("q"), array("q"), array("q")
        codes = [array("I") for _ in range(5)]
        self._shapes, self._places, self._terms, self._dates, self._remarks = (_Distinct() for _ in range(5))
        distinct = (self._shapes, self._places, self._terms, self._dates, self._remarks)
        columns = [(column.append, table.code) for column, table in zip(codes, distinct, strict=True)]
        for offer in offers:
            ids.append(offer.id)
            prices.append(-1 if offer.price_micros_per_month is None else offer.price_micros_per_month)
            quoted.append(-1 if offer.quoted is None else offer.quoted.micros)
            for (append, code), value in zip(columns, _parts(offer), strict=True):
                append(code(value))
        self._ids, self._prices, self._quoted = (
            np.frombuffer(column, np.int64) for column in (ids, prices, quoted)
        )
        self._shape_codes, self._place_codes, self._term_codes, self._date_codes, self._remark_codes = (
            _narrowed(column, len(table.values)) for column, table in zip(codes, distinct, strict=True)
        )
        for table in distinct:
            table.forget_codes()

    def _sort(self) -> None:
        """Put the rows into the order of `sort_key` for `--sort price`."""
        terms: Sequence[_Terms] = self._terms.values
        ranks = np.array([_RANKS[term.standing] for term in terms], np.int8)[self._term_codes]
        weight_max = max(self._weights.values())
        weight = np.array([self._weights.get(term.currency, 0) / weight_max for term in terms], np.float64)
        self._values = np.where(ranks == 0, self._prices * weight[self._term_codes], 0.0)
        shapes = _order_of([(shape.provider, shape.instance_type) for shape in self._shapes.values])[
            self._shape_codes
        ]
        places = _order_of(self._places.values)[self._place_codes]
        order = np.lexsort((self._ids, places, shapes, self._values, ranks))
        priced = int(np.searchsorted(ranks[order], 1))
        self._refused_from = int(np.searchsorted(ranks[order], _RANKS["refused"]))
        self._settle_near_ties(order[:priced], shapes, places)
        for name in ("_ids", "_prices", "_quoted", "_values", "_shape_codes", "_place_codes", "_term_codes",
                     "_date_codes", "_remark_codes"):  # fmt: skip
            setattr(self, name, getattr(self, name)[order])

    def _settle_near_ties(self, order: Numbers, shapes: Numbers, places: Numbers) -> None:
        """Where prices in several currencies nearly tie, floats cannot tell their order: exact integers do."""
        currencies = np.array([hash(term.currency) for term in self._terms.values], np.int64)[
            self._term_codes[order]
        ]
        values = self._values[order]
        near = np.diff(values) <= values[1:] * CLUSTER
        mixed = np.flatnonzero(near & (np.diff(currencies) != 0))
        end = 0
        for place in mixed:
            if place < end:
                continue
            start, end = int(place), int(place) + 1
            while start and near[start - 1]:
                start -= 1
            while end < len(near) and near[end]:
                end += 1
            rows = order[start : end + 1]
            order[start : end + 1] = sorted(
                rows.tolist(),
                key=lambda row: (
                    int(self._prices[row])
                    * self._weights[self._terms.values[self._term_codes[row]].currency],
                    shapes[row],
                    places[row],
                    self._ids[row],
                ),
            )

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
        self._shape_fields: list[Any] = [
            (each.source, each.provider, each.kind, tuple(each[3:-1])) for each in shapes
        ]
        self._folded = [place_text(place.region, place.zone) for place in self._places.values]
        self._spans_of_gpu = [self._span(self._unrefused(rows)) for rows in self._rows_of_gpu]
        self._spans_of_kind = [self._span(self._unrefused(rows)) for rows in self._rows_of_kind]

    # --- asking -------------------------------------------------------------------------------------------------

    def _lists(self, query: Query) -> list[Numbers]:
        """The rows of each card or kind that is asked for, each list in order."""
        numbers, by = (
            (self._gpu_numbers, self._rows_of_gpu) if query.gpus else (self._kind_numbers, self._rows_of_kind)
        )
        lists = [by[numbers[name]] for name in _names(query) if name in numbers]
        return lists if query.refused else [self._unrefused(rows) for rows in lists]

    def _unrefused(self, rows: Numbers) -> Numbers:
        cut: Numbers = rows[
            : np.searchsorted(rows, self._refused_from)
        ]  # refused prices lie behind all others
        return cut

    def _span_of_all(self, query: Query) -> _Span:
        numbers, spans = (
            (self._gpu_numbers, self._spans_of_gpu)
            if query.gpus
            else (self._kind_numbers, self._spans_of_kind)
        )
        found = [spans[numbers[name]] for name in _names(query) if name in numbers]
        oldest = min((span.oldest for span in found if span.oldest), default="")
        return _Span(max((span.newest for span in found), default=""), oldest)

    def _span(self, rows: Numbers) -> _Span:
        codes = np.flatnonzero(np.bincount(self._date_codes[rows])) if len(rows) else ()
        days = [self._dates.values[code].as_of for code in codes]
        return _Span(max(days, default=""), min((day for day in days if day), default=""))

    def _fitting(self, rows: Numbers, query: Query) -> Numbers:
        """Those of the rows that pass all further filters, in their order."""
        shapes = self._fitting_shapes(query)
        if shapes is not None:
            rows = rows[shapes[self._shape_codes[rows]]]
        if query.regions:
            wanted = [region.casefold() for region in query.regions]
            places = np.array(
                [any(region in folded for region in wanted) for folded in self._folded], np.bool_
            )
            rows = rows[places[self._place_codes[rows]]]
        if query.modes:
            terms = np.array([term.mode in query.modes for term in self._terms.values], np.bool_)
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

    def _limit(self, query: Query, term: _Terms) -> int:
        if term.standing != "priced" or query.price_max is None:
            return -2  # below every price, and below the -1 of those that have none
        return limit_per_month(query.price_max, term.currency, self._rates, self._on)

    def _first(self, rows: Numbers, query: Query, limit: int | None) -> Numbers:
        """Rows among which the first `limit` surely are; by price, exactly those."""
        if query.sort == "price" or limit is None:
            return rows[:limit]
        units = {
            "price-per-gpu": self._count,
            "price-per-tflops": self._tflops * self._count,
            "price-per-gb": self._memory * self._count,
        }[query.sort][self._shape_codes[rows]]
        priced = np.array([term.standing == "priced" for term in self._terms.values], np.bool_)
        measurable = priced[self._term_codes[rows]] & (units > 0)
        values = self._values[rows][measurable] / units[measurable]
        if len(values) < limit:
            return rows
        edge = np.partition(values, limit - 1)[limit - 1]
        first: Numbers = rows[measurable][values <= edge * (1 + CLUSTER)]
        return first

    def _offers(self, rows: Numbers) -> list[Offer]:
        """The offers of these rows. In one loop, by column and by position: a large answer is built of little else."""
        places, dates, words = self._places.values, self._dates.values, self._remarks.values
        shapes, terms = self._shape_fields, self._terms.values
        columns = (
            self._shape_codes, self._place_codes, self._term_codes, self._date_codes, self._remark_codes, self._ids,
            self._prices, self._quoted,
        )  # fmt: skip
        offers = []
        for shape, place, term, dated, said, id, price, quoted in zip(
            *(column[rows].tolist() for column in columns), strict=True
        ):
            source, provider, kind, hardware = shapes[shape]
            standing, mode, months, per, basis, currency = terms[term]
            cited, flags, note = words[said]
            region, zone = places[place]
            since, as_of, until = dates[dated]
            told = None if quoted < 0 else Price(quoted, currency, per)
            due = None if price < 0 else price
            fields: tuple[Any, ...] = (
                source, provider, kind, standing, id, cited, region, zone, *hardware, mode, months, told, basis,
                currency, due, since, as_of, until, flags, note,
            )  # fmt: skip
            offers.append(Offer(*fields))
        return offers


def _parts(offer: Offer) -> tuple[_Shape, _Place, _Terms, _Dates, _Words]:
    return (
        _Shape(
            offer.source, offer.provider, offer.kind, offer.instance_type, offer.gpu, offer.gpu_name, offer.gpu_count,
            offer.gpu_share, offer.gpu_memory_bytes, offer.gpu_tflops, offer.vcpus, offer.cpu, offer.ram_bytes,
            offer.disk_gb, offer.network_gbps, usable_ram(offer),
        ),
        _Place(offer.region, offer.zone),
        _Terms(
            offer.standing, offer.mode, offer.term_months, offer.quoted.per if offer.quoted else None, offer.basis,
            offer.currency,
        ),
        _Dates(offer.since, offer.as_of, offer.until),
        _Words(offer.cited, offer.flags, offer.note),
    )  # fmt: skip


def _names(query: Query) -> Sequence[str]:
    return tuple(dict.fromkeys(query.gpus or query.kinds))


def _merged(lists: Sequence[Numbers]) -> Numbers:
    if len(lists) == 1:
        return lists[0]
    return np.sort(np.concatenate(lists)) if lists else np.empty(0, np.uint32)


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


def _order_of(values: Sequence[tuple[str, ...]]) -> Numbers:
    """For each value its place when all are sorted; equal ones share it."""
    places = {value: place for place, value in enumerate(sorted(set(values)))}
    return np.array([places[value] for value in values], np.int32)
