"""The rows of the index, in the order of `rules.sort_key` for `--sort price`.

Invariants: a row has five codes of distinct values, an id and two prices, with -1 for no price; refused prices come
last; columns never change after they are built.
"""

from array import array
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from teraflock.base.money import Price
from teraflock.offer.index.model import Distinct, Terms, parts_of
from teraflock.offer.model import Offer

Numbers = npt.NDArray[Any]

CLUSTER: Final = 1e-12
"""Prices in different currencies that differ by less than this fraction are compared again as exact integers."""

_RANKS: Final = {"priced": 0, "unknown": 2, "refused": 3}


class Columns:
    def __init__(self, offers: Iterable[Offer], weights: Mapping[str, int]) -> None:
        self._read(offers)
        self._sort(weights)
        self._shape_fields: list[Any] = [
            (each.source, each.provider, each.kind, tuple(each[3:-1])) for each in self.shapes.values
        ]

    def offers(self, rows: Numbers) -> list[Offer]:
        """Build the offers of these rows. By position in one loop, because it dominates the time of large results."""
        places, dates, words = self.places.values, self.dates.values, self.remarks.values
        shapes, terms = self._shape_fields, self.terms.values
        columns = (
            self.shape_codes, self.place_codes, self.term_codes, self.date_codes, self.remark_codes, self.ids,
            self.prices, self.quoted,
        )  # fmt: skip
        offers = []
        for shape, place, term, dated, words_code, id, price, quoted in zip(
            *(column[rows].tolist() for column in columns), strict=True
        ):
            source, provider, kind, hardware = shapes[shape]
            standing, mode, months, per, basis, currency = terms[term]
            cited, flags, note = words[words_code]
            _, region, zone = places[place]
            since, as_of, until, outdated = dates[dated]
            quoted_price = None if quoted < 0 else Price(quoted, currency, per)
            due = None if price < 0 else price
            fields: tuple[Any, ...] = (
                source, provider, kind, standing, id, cited, region, zone, *hardware, mode, months, quoted_price, basis,
                currency, due, since, as_of, until, flags, note, outdated,
            )  # fmt: skip
            offers.append(Offer(*fields))
        return offers

    def _read(self, offers: Iterable[Offer]) -> None:
        ids, prices, quoted = array("q"), array("q"), array("q")
        codes = [array("I") for _ in range(5)]
        self.shapes, self.places, self.terms, self.dates, self.remarks = (Distinct() for _ in range(5))
        distinct = (self.shapes, self.places, self.terms, self.dates, self.remarks)
        columns = [(column.append, table.code) for column, table in zip(codes, distinct, strict=True)]
        for offer in offers:
            ids.append(offer.id)
            prices.append(-1 if offer.price_micros_per_month is None else offer.price_micros_per_month)
            quoted.append(-1 if offer.quoted is None else offer.quoted.micros)
            for (append, code), value in zip(columns, parts_of(offer), strict=True):
                append(code(value))
        self.ids, self.prices, self.quoted = (
            np.frombuffer(column, np.int64) for column in (ids, prices, quoted)
        )
        self.shape_codes, self.place_codes, self.term_codes, self.date_codes, self.remark_codes = (
            _narrowed(column, len(table.values)) for column, table in zip(codes, distinct, strict=True)
        )
        for table in distinct:
            table.forget_codes()

    def _sort(self, weights: Mapping[str, int]) -> None:
        """Sort the rows in the order of `sort_key` for `--sort price`."""
        terms: Sequence[Terms] = self.terms.values
        ranks = np.array([_RANKS[term.standing] for term in terms], np.int8)[self.term_codes]
        weight_max = max(weights.values())
        weight = np.array([weights.get(term.currency, 0) / weight_max for term in terms], np.float64)
        self.values = np.where(ranks == 0, self.prices * weight[self.term_codes], 0.0)
        shapes = _order_of([(shape.provider, shape.instance_type) for shape in self.shapes.values])[
            self.shape_codes
        ]
        places = _order_of(self.places.values)[self.place_codes]
        order = np.lexsort((self.ids, places, shapes, self.values, ranks))
        priced = int(np.searchsorted(ranks[order], 1))
        self.refused_from = int(np.searchsorted(ranks[order], _RANKS["refused"]))
        self._settle_near_ties(order[:priced], shapes, places, weights)
        for name in ("ids", "prices", "quoted", "values", "shape_codes", "place_codes", "term_codes",
                     "date_codes", "remark_codes"):  # fmt: skip
            setattr(self, name, getattr(self, name)[order])

    def _settle_near_ties(
        self, order: Numbers, shapes: Numbers, places: Numbers, weights: Mapping[str, int]
    ) -> None:
        """Sort nearly equal prices in several currencies by exact integers, because floats are not precise enough."""
        currencies = np.array([hash(term.currency) for term in self.terms.values], np.int64)[
            self.term_codes[order]
        ]
        values = self.values[order]
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
                    int(self.prices[row]) * weights[self.terms.values[self.term_codes[row]].currency],
                    shapes[row],
                    places[row],
                    self.ids[row],
                ),
            )


def _narrowed(codes: Any, distinct: int) -> Numbers:
    """Convert the codes to the smallest integer type that holds them."""
    narrow: Numbers = np.frombuffer(codes, np.uint32).astype(np.min_scalar_type(max(0, distinct - 1)))
    return narrow


def _order_of(values: Sequence[tuple[str, ...]]) -> Numbers:
    """Return the rank of each value. Equal values have the same rank."""
    places = {value: place for place, value in enumerate(sorted(set(values)))}
    return np.array([places[value] for value in values], np.int32)
