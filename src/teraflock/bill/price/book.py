"""Reads a price book. It is accepted as a whole or refused as a whole, with the line of the mistake.

- from: 2026-01-01            # a date, or a time with its zone; a period lasts until the next one, or `until`
  currency: USD               # one that has an exchange rate
  gpu:
    V100: {on-demand: 3.06/hour, monthly: 2233/month, spot: 1.10/hour}
    V100 32GB: 3.50/hour      # the more specific name applies
    A100 80GB:1g.10gb: 0.40/hour   # a slice; default: its share of the card's price
  vcpu: 0.01/hour
  ram: 0.002/hour             # a GB
  disk: 0.10/month            # a GB
  snapshot: 0.05/month        # a GB of snapshots
  image: 0.05/month           # a GB of an image made from an instance; default: as snapshots
  data: 0.03/month            # a GB of datasets; default: as snapshots
  address: 0.005/hour         # a public address; default: free
  egress: 0.05                # a GB of outgoing traffic; internal traffic is free
  minimum: 60 seconds
  monthly: 30%                # off, if a month is bought and there is no monthly price
  spot: 60%                   # off GPUs, vCPUs and RAM; disks, snapshots and images have no spot price
  reserved: {1 year: 25%, 2 years: 35%, 3 years: 45%}    # off the monthly price
  upfront: 5%                 # off what is paid at once
  long-term: {30 days: 5%, 90 days: 10%}
  refund: 50%                 # of the rest of a month that ends early
  tax: {VAT: 20%}
  regions: {north: {gpu: {V100: 2.90/hour}}}
  hosts: {node7: {gpu: {V100: 2.50/hour}}}
"""

from collections.abc import Mapping
from itertools import pairwise
from typing import Final

import msgspec

from teraflock.base.clock import at_microseconds
from teraflock.base.errors import UnknownName, nearest_names
from teraflock.base.exchange import Rates
from teraflock.bill.price import words
from teraflock.bill.price.model import FOREVER_US, YEARS_RESERVED, PriceSheet, PriceTable, Unit, share_ppm
from teraflock.bill.price.sheet import BadBook, Node, Sheet, is_table, line_of
from teraflock.catalog.names import find_kinds

DAYS_MAX: Final = 3_660

_TIMED: Final = ("vcpu", "ram", "disk", "snapshot", "image", "data", "address")
_KEPT: Final = ("disk", "snapshot", "image", "data", "address")
_PLACE_KEYS: Final = ("gpu", *_TIMED, "egress")
_SHARES: Final = ("monthly", "spot", "upfront", "refund")
_KEYS: Final = (
    "from", "until", "currency", *_PLACE_KEYS, *_SHARES, "minimum", "reserved", "long-term", "tax", "regions", "hosts",
)  # fmt: skip


class Draft(msgspec.Struct, frozen=True, kw_only=True):
    """A period as written. When it applies is decided when the book is accepted."""

    line: int
    from_us: int
    until_us: int
    prices: PriceSheet


def read_book(
    text: str, *, name: str, rates: Rates, hosts: Mapping[str, str] | None = None
) -> tuple[Draft, ...]:
    """The periods of a book, oldest first. `hosts` maps host names to ids; None skips the check of host names."""
    sheet = Sheet(name)
    return _in_order(name, [_Period(sheet, rates, hosts).read(node) for node in sheet.parts(text)])


def _in_order(name: str, drafts: list[Draft]) -> tuple[Draft, ...]:
    ordered = sorted(drafts, key=lambda draft: draft.from_us)
    for index, (earlier, later) in enumerate(pairwise(ordered)):
        both = f"lines {earlier.line} and {later.line}"
        if earlier.from_us == later.from_us:
            raise BadBook(f"{name}, {both}: two periods start at the same time")
        if earlier.until_us == FOREVER_US:
            ordered[index] = msgspec.structs.replace(earlier, until_us=later.from_us)
        elif earlier.until_us > later.from_us:
            raise BadBook(
                f"{name}, {both}: the dates of two periods overlap",
                hint="Set `until` to the next `from` or earlier, or remove it",
            )
    return tuple(ordered)


class _Period:
    """Reads one period: general prices, and prices for regions and hosts."""

    def __init__(self, sheet: Sheet, rates: Rates, hosts: Mapping[str, str] | None) -> None:
        self._sheet = sheet
        self._rates = rates
        self._hosts = hosts

    def read(self, node: Node) -> Draft:
        sheet = self._sheet
        fields = sheet.fields(node, _KEYS)
        for key in ("from", "currency"):
            if key not in fields:
                raise sheet.bad(node, f"a period needs `{key}`")
        from_us = words.time_us(sheet, fields["from"])
        until_us = words.time_us(sheet, fields["until"]) if "until" in fields else FOREVER_US
        if until_us <= from_us:
            raise sheet.bad(fields["until"], "the period ends before it starts")
        prices = self._prices(fields, from_us)
        return Draft(line=line_of(node), from_us=from_us, until_us=until_us, prices=prices)

    def _prices(self, fields: Mapping[str, Node], from_us: int) -> PriceSheet:
        sheet, on = self._sheet, at_microseconds(from_us).date()
        shares = {f"{key}_bp": words.percent(sheet, fields[key]) for key in _SHARES if key in fields}
        tax_name, tax_bp = words.tax(sheet, fields["tax"]) if "tax" in fields else ("", 0)
        days = range(1, DAYS_MAX + 1)
        long_term = words.steps(sheet, fields.get("long-term"), words.DAYS, "days", days)
        return PriceSheet(
            currency=words.currency(sheet, fields["currency"], self._rates),
            rates={each: self._rates.rate(each, on).micros_per_usd for each in self._rates.currencies()},
            general=self._table(fields),
            regions=self._places(fields.get("regions"), None),
            hosts=self._places(fields.get("hosts"), self._hosts),
            minimum_seconds=words.minimum_seconds(sheet, fields["minimum"]) if "minimum" in fields else 0,
            reserved_bp=words.steps(sheet, fields.get("reserved"), words.YEARS, "years", YEARS_RESERVED),
            long_term=tuple(sorted(long_term.items())),
            tax_name=tax_name,
            tax_bp=tax_bp,
            spot_for_compute=True,
            **shares,
        )

    def _places(self, node: Node | None, known: Mapping[str, str] | None) -> dict[str, PriceTable]:
        tables = {}
        for key, value in self._sheet.entries(node) if node is not None else ():
            name = self._sheet.text(key)
            if known is not None and name not in known and name not in known.values():
                near = ", ".join(f"`{each}`" for each in nearest_names(name, known))
                hint = f"Did you mean {near}?" if near else ""
                raise self._sheet.bad(key, f"unknown host `{name}`", hint)
            fields = self._sheet.fields(value, _PLACE_KEYS)
            tables[known.get(name, name) if known else name] = self._table(fields)
        return tables

    def _table(self, fields: Mapping[str, Node]) -> PriceTable:
        units = {key: self._unit(fields[key]) for key in _TIMED if key in fields}
        for key in _KEPT:
            if key in units and units[key].spot is not None:
                raise self._sheet.bad(
                    fields[key],
                    f"`{key}` cannot have a spot price: spot is only for GPUs, vCPUs and RAM",
                    "Remove `spot` here",
                )
        egress = words.amount(self._sheet, fields["egress"], timed=False) if "egress" in fields else None
        gpu = self._cards(fields["gpu"]) if "gpu" in fields else {}
        return PriceTable(gpu=gpu, egress=egress, **units)

    def _unit(self, node: Node) -> Unit:
        if not is_table(node):
            return Unit(on_demand=words.amount(self._sheet, node))
        fields = self._sheet.fields(node, ("on-demand", "monthly", "spot"))
        if "on-demand" not in fields:
            raise self._sheet.bad(node, "the on-demand price is missing", "Add `on-demand: 3.06/hour`")
        amounts = {key: words.amount(self._sheet, value) for key, value in fields.items()}
        return Unit(on_demand=amounts["on-demand"], monthly=amounts.get("monthly"), spot=amounts.get("spot"))

    def _cards(self, node: Node) -> dict[str, Unit]:
        named: dict[
            str, tuple[int, int, Unit]
        ] = {}  # by id: how many GPU models the name matched, its line, the price
        for key, value in self._sheet.entries(node):
            ids, unit = self._kinds(key), self._unit(value)
            for id in ids:
                width, line, _ = named.get(id, (len(ids) + 1, 0, unit))
                if width == len(ids):
                    raise self._sheet.bad(key, f"`{id}` already has a price in line {line}")
                if len(ids) < width:
                    named[id] = (len(ids), line_of(key), unit)
        return {id: unit for id, (_, _, unit) in sorted(named.items())}

    def _kinds(self, node: Node) -> tuple[str, ...]:
        name, colon, profile = self._sheet.text(node).partition(":")
        profile = profile.strip()
        try:
            ids = find_kinds(name)
        except UnknownName as error:
            raise self._sheet.bad(node, f"unknown GPU model `{name}`", error.hint) from None
        if not colon:
            return ids
        sliced = tuple(f"{id}:{profile}" for id in ids if share_ppm(id, profile) is not None)
        if not sliced:
            raise self._sheet.bad(node, f"`{name}` has no slice `{profile}`", "Example: `A100 80GB:1g.10gb`")
        return sliced
