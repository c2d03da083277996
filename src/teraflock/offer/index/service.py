"""Search offers in memory. Gives the same results as `question/store.py` and `rules.matches`.

The index is immutable: it is built from one snapshot of the offers and the exchange rates of one day.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from teraflock.base.exchange import Rates
from teraflock.catalog.places import PlaceFilter, located
from teraflock.offer.index.columns import CLUSTER, Columns, Numbers
from teraflock.offer.index.model import Distinct, IndexShape, Terms
from teraflock.offer.model import WITH_GPU, GpuPart, Offer, Query, Sort
from teraflock.offer.rules import (
    SAME_SHARE,
    figures_of_cards,
    limit_per_month,
    only_kinds,
    shows_outdated,
    sort_key,
    weights,
)

Mask = npt.NDArray[np.bool_]
PLACE_FILTERS_MAX: Final = 100
"""A million offers have about 10,000 places, so these masks take 1 MB."""


class OfferIndex:
    def __init__(self, offers: Iterable[Offer], rates: Rates, on: date) -> None:
        self._rates = rates
        self._on = on
        self._weights = weights(rates, on)
        self._columns = Columns(offers, self._weights)
        self._measures: dict[Sort, Numbers] = {}
        self._known_inside: dict[PlaceFilter, Mask] = {}
        self._describe()

    def search(self, query: Query, *, limit: int) -> tuple[Offer, ...]:
        """Return the first `limit` matching offers in the order of `rules.sort_key`."""
        assert query.as_of is None, "only the store has past prices"
        lists, by_price = self._lists(query), query.sort == "price"
        if by_price and only_kinds(query):
            lists = [
                each[:limit] for each in lists
            ]  # the first rows overall are among the first rows of each list
        rows = _merged(lists, in_order=by_price)
        if not only_kinds(query):
            rows = self._fitting(rows, query)
        offers = self._columns.offers(self._first(rows, query, limit))
        if not by_price:
            offers.sort(key=sort_key(query, self._weights))
        return tuple(offers[:limit])

    def _describe(self) -> None:
        """Build the arrays for the filters, and the rows of each card."""
        shapes: Sequence[IndexShape] = self._columns.shapes.values
        self._gpu_numbers, gpu_of = _numbered(shape.gpu for shape in shapes)
        self._provider_numbers, self._provider_of = _numbered(shape.provider for shape in shapes)
        self._source_numbers, self._source_of = _numbered(shape.source for shape in shapes)
        self._kind_numbers, kind_of = _numbered(shape.kind for shape in shapes)
        self._count = _figures(shape.gpu_count for shape in shapes)
        self._memory = _figures(shape.gpu_memory_bytes for shape in shapes)
        self._tflops = _figures(shape.gpu_tflops for shape in shapes)
        self._vcpus = _figures(shape.vcpus for shape in shapes)
        self._ram = _figures(shape.ram_usable for shape in shapes)
        self._share = np.array([shape.gpu_share for shape in shapes], np.float64)
        whole = self._share >= 1
        fresh = np.array([not dates.outdated for dates in self._columns.dates.values], np.bool_)
        self._is_whole = whole[self._columns.shape_codes]
        self._is_fresh = fresh[self._columns.date_codes]
        gpus, kinds = gpu_of[self._columns.shape_codes], kind_of[self._columns.shape_codes]
        every = np.arange(len(gpus), dtype=np.uint32)
        usual = every[self._is_whole & self._is_fresh]
        self._every, self._usual = (self._lists_of(rows, gpus, kinds) for rows in (every, usual))

    def _lists_of(self, rows: Numbers, gpus: Numbers, kinds: Numbers) -> "_Lists":
        """Return the rows of each card and kind among `rows`."""
        of_kind = [rows[each] for each in _rows_by(kinds[rows], len(self._kind_numbers))]
        with_gpu = [of_kind[i] for kind, i in self._kind_numbers.items() if kind in WITH_GPU]
        of_gpu = [rows[each] for each in _rows_by(gpus[rows], len(self._gpu_numbers))]
        return _Lists(of_gpu, of_kind, _merged(with_gpu, in_order=True))

    def _lists(self, query: Query) -> list[Numbers]:
        """Return a sorted list of rows for each requested card or kind, without what is hidden."""
        outdated = shows_outdated(query)
        held = self._every if query.slices or outdated else self._usual
        numbers, by = (self._gpu_numbers, held.of_gpu) if query.gpus else (self._kind_numbers, held.of_kind)
        is_usual = not query.gpus and query.kinds == WITH_GPU
        names = _names(query)
        lists = [held.with_gpu] if is_usual else [by[numbers[name]] for name in names if name in numbers]
        if query.slices != outdated:
            shown = self._is_fresh if query.slices else self._is_whole
            lists = [rows[shown[rows]] for rows in lists]
        return lists if query.refused else [self._without_refused(rows) for rows in lists]

    def _without_refused(self, rows: Numbers) -> Numbers:
        cut: Numbers = rows[: np.searchsorted(rows, self._columns.refused_from)]
        return cut

    def _fitting(self, rows: Numbers, query: Query) -> Numbers:
        """Return the rows that pass all other filters, in order."""
        shapes = self._fitting_shapes(query)
        if shapes is not None:
            rows = rows[shapes[self._columns.shape_codes[rows]]]
        if query.places:
            rows = rows[self._inside(query.places)[self._columns.place_codes[rows]]]
        if query.newer_than:
            newer = [dates.as_of >= query.newer_than for dates in self._columns.dates.values]
            rows = rows[np.array(newer, np.bool_)[self._columns.date_codes[rows]]]
        if query.modes:
            terms = np.array([term.mode in query.modes for term in self._columns.terms.values], np.bool_)
            rows = rows[terms[self._columns.term_codes[rows]]]
        if query.price_max is not None:
            limits = np.array([self._limit(query, term) for term in self._columns.terms.values])
            rows = rows[self._columns.prices[rows] <= limits[self._columns.term_codes[rows]]]
        return rows

    def _inside(self, wanted: PlaceFilter) -> Mask:
        """Return which places pass a filter. Cached, because it asks about every place."""
        if wanted not in self._known_inside:
            if len(self._known_inside) >= PLACE_FILTERS_MAX:
                self._known_inside.clear()
            inside = [
                located(each.provider, each.region, each.zone, wanted) == "in"
                for each in self._columns.places.values
            ]
            self._known_inside[wanted] = np.array(inside, np.bool_)
        return self._known_inside[wanted]

    def _fitting_shapes(self, query: Query) -> Mask | None:
        """Return which shapes pass the filters on shapes. `None` if there is no such filter."""
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
                masks.append(figures >= least)  # false if the figure is missing (NaN)
        if query.count_max is not None:
            masks.append(self._count <= query.count_max)
        if query.parts:
            masks.append(np.logical_or.reduce([self._is_part(part) for part in query.parts]))
        if not masks:
            return None
        fitting: Mask = np.logical_and.reduce(masks)
        return fitting

    def _is_part(self, part: GpuPart) -> Mask:
        least, most = part.memory_about
        same: Mask = (
            (np.abs(self._share - part.share) < SAME_SHARE) & (self._memory >= least) & (self._memory <= most)
        )
        return same

    def _limit(self, query: Query, term: Terms) -> int:
        if term.standing != "priced" or query.price_max is None:
            return -2  # below every price, including the -1 for no price
        return limit_per_month(query.price_max, term.currency, self._rates, self._on)

    def _first(self, rows: Numbers, query: Query, limit: int) -> Numbers:
        """Return rows that include the first `limit`. When sorting by price, return exactly those."""
        if query.sort == "price":
            return rows[:limit]
        if len(rows) <= limit:
            return rows
        values = self._measure(query.sort)[rows]
        edge = np.partition(values, limit - 1)[limit - 1]
        first: Numbers = rows[
            values <= edge * (1 + CLUSTER)
        ]  # infinite if fewer than `limit` rows have the figure
        return first

    def _measure(self, sort: Sort) -> Numbers:
        """Return the sort value of each row, infinite if the figure is missing. Cached."""
        if sort not in self._measures:
            units = self._units(sort)[self._columns.shape_codes]
            priced = np.array([term.standing == "priced" for term in self._columns.terms.values], np.bool_)
            measurable = priced[self._columns.term_codes] & (units > 0)
            values = np.full(len(units), np.inf)
            np.divide(self._columns.values, units, out=values, where=measurable)
            self._measures[sort] = values
        return self._measures[sort]

    def _units(self, sort: Sort) -> npt.NDArray[np.float64]:
        """Return the divisor of the price for each shape, as `rules.measure` does. NaN if the figure is missing."""
        if figures := figures_of_cards(sort):
            shapes: Sequence[IndexShape] = self._columns.shapes.values
            cards = _figures(figures.get(shape.gpu) for shape in shapes)
            return self._count * _figures(shape.gpu_share for shape in shapes) * cards
        return {
            "price-per-gpu": self._count,
            "price-per-tflops": self._tflops * self._count,
            "price-per-gb": self._memory * self._count,
        }[sort]


class _Lists(NamedTuple):
    """The rows of each card and of each kind, and of all kinds with a GPU, in order."""

    of_gpu: list[Numbers]
    of_kind: list[Numbers]
    with_gpu: Numbers
    """For queries without `gpu`."""


def _names(query: Query) -> Sequence[str]:
    return tuple(dict.fromkeys(query.gpus or query.kinds))


def _merged(lists: Sequence[Numbers], *, in_order: bool) -> Numbers:
    if len(lists) == 1:
        return lists[0]
    rows: Numbers = np.concatenate(lists) if lists else np.empty(0, np.uint32)
    return np.sort(rows) if in_order else rows


def _numbered(names: Iterable[str]) -> tuple[Mapping[str, int], Numbers]:
    table = Distinct()
    codes = np.array([table.code(name) for name in names], np.int32)
    return {name: number for number, name in enumerate(table.values)}, codes


def _figures(values: Iterable[float | None]) -> npt.NDArray[np.float64]:
    return np.array([np.nan if value is None else value for value in values], np.float64)


def _rows_by(numbers: Numbers, count: int) -> list[Numbers]:
    """Return a sorted list of rows for each number."""
    order = np.argsort(numbers, kind="stable").astype(np.uint32)
    edges = np.searchsorted(numbers[order], np.arange(count + 1))
    return [order[edges[i] : edges[i + 1]] for i in range(count)]
