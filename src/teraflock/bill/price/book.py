"""Reading a price book. It is taken as a whole or refused as a whole, with the line that is wrong.

- from: 2026-01-01            # a date, or a time with its zone; a period lasts until the next one, or `until`
  currency: USD               # one that has an exchange rate
  gpu:
    V100: {on-demand: 3.06/hour, monthly: 2233/month, spot: 1.10/hour}
    V100 32GB: 3.50/hour      # the narrower name counts
    A100 80GB:1g.10gb: 0.40/hour   # a slice; without a price of its own it costs its share of the card
  vcpu: 0.01/hour
  ram: 0.002/hour             # a GB
  disk: 0.10/month            # a GB
  snapshot: 0.05/month        # a GB
  address: 0.004/hour
  egress: 0.05                # a GB that leaves the house; traffic inside it is free
  minimum: 60 seconds
  monthly: 30%                # off, where a month is bought and no monthly price is given
  spot: 60%
  reserved: {1 year: 25%, 2 years: 35%, 3 years: 45%}    # off the monthly price
  upfront: 5%                 # off what is paid at once
  long-term: {30 days: 5%, 90 days: 10%}
  refund: 50%                 # of what is left of a month that is ended early
  tax: {VAT: 20%}
  regions: {north: {gpu: {V100: 2.90/hour}}}
  hosts: {node7: {gpu: {V100: 2.50/hour}}}
"""

import re
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from typing import Any, Final, TypeVar

import msgspec
import yaml

from teraflock.base.errors import BadInput, UnknownName, nearest_names
from teraflock.base.exchange import Rates
from teraflock.base.money import Period as Per
from teraflock.base.money import Price, parse_micros
from teraflock.bill.price.model import BASIS, FOREVER_US, YEARS_RESERVED, Prices, Table, Unit, share_ppm
from teraflock.catalog.names import find_kinds

T = TypeVar("T")
Node = yaml.Node

BYTES_MAX: Final = 1 << 20  # a book of ten thousand prices has half of that
MINIMUM_SECONDS_MAX: Final = 86_400
DAYS_MAX: Final = 3_660
MICROS_MAX: Final = 10**15
"""A milliard a month for one of anything: above, a figure is a slip, and sums would leave 64 bits."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_AMOUNT: Final = re.compile(r"(-?\d{1,12}(?:\.\d{1,9})?)\s*(?:/\s*(second|hour|month))?")
_PERCENT: Final = re.compile(r"(\d{1,3}(?:\.\d{1,2})?)\s*%")
_SECONDS: Final = re.compile(r"(\d{1,6})\s*(?:s|seconds?)?")
_YEARS: Final = re.compile(r"(\d+)\s*years?")
_DAYS: Final = re.compile(r"(\d{1,4})\s*days?")
_PLACE_KEYS: Final = ("gpu", "vcpu", "ram", "disk", "snapshot", "address", "egress")
_KEYS: Final = (
    "from", "until", "currency", *_PLACE_KEYS, "minimum", "monthly", "spot", "reserved", "upfront", "long-term",
    "refund", "tax", "regions", "hosts",
)  # fmt: skip


class BadBook(BadInput):
    code = "bad_price_book"


class Draft(msgspec.Struct, frozen=True, kw_only=True):
    """A period as it is written; when it counts is decided when the book is taken."""

    line: int
    from_us: int
    until_us: int
    prices: Prices


def read_book(
    text: str, *, name: str, rates: Rates, hosts: Mapping[str, str] | None = None
) -> tuple[Draft, ...]:
    """The periods of a book, oldest first. `hosts` are the ids of the hosts by their names, where they are known."""
    return _Reader(name, rates, hosts).read(text)


class _Reader:
    def __init__(self, name: str, rates: Rates, hosts: Mapping[str, str] | None) -> None:
        self._name = name
        self._rates = rates
        self._hosts = hosts

    def read(self, text: str) -> tuple[Draft, ...]:
        if len(text) > BYTES_MAX:
            raise BadBook(f"{self._name} is larger than {BYTES_MAX >> 20} MB")
        try:
            root = yaml.compose(text, Loader=yaml.SafeLoader)
        except yaml.YAMLError as error:
            mark = getattr(error, "problem_mark", None)
            line = mark.line + 1 if mark else 1
            raise BadBook(f"{self._name}, line {line}: this is no YAML: {_reason(error)}") from None
        if not isinstance(root, yaml.SequenceNode) or not root.value:
            raise self._bad(root, "a price book is a list of periods", "Begin each with `- from: 2026-01-01`")
        drafts = [self._period(node) for node in root.value]
        return self._in_order(drafts)

    def _in_order(self, drafts: list[Draft]) -> tuple[Draft, ...]:
        ordered = sorted(drafts, key=lambda draft: draft.from_us)
        for index, (earlier, later) in enumerate(pairwise(ordered)):
            both = f"lines {earlier.line} and {later.line}"
            if earlier.from_us == later.from_us:
                raise BadBook(f"{self._name}, {both}: two periods begin at the same time")
            if earlier.until_us == FOREVER_US:
                ordered[index] = msgspec.structs.replace(earlier, until_us=later.from_us)
            elif earlier.until_us > later.from_us:
                raise BadBook(
                    f"{self._name}, {both}: the dates of two periods overlap",
                    hint="Let `until` be no later than the next `from`, or leave it out",
                )
        return tuple(ordered)

    def _period(self, node: Node) -> Draft:
        fields = self._fields(node, _KEYS)
        for key in ("from", "currency"):
            if key not in fields:
                raise self._bad(node, f"a period needs `{key}`")
        from_us = self._time(fields["from"])
        until_us = self._time(fields["until"]) if "until" in fields else FOREVER_US
        if until_us <= from_us:
            raise self._bad(fields["until"], "a period ends before it begins")
        return Draft(
            line=_line(node), from_us=from_us, until_us=until_us, prices=self._prices(node, fields, from_us)
        )

    def _prices(self, node: Node, fields: Mapping[str, Node], from_us: int) -> Prices:
        percent = {
            key: self._percent(fields[key])
            for key in ("monthly", "spot", "upfront", "refund")
            if key in fields
        }
        tax_name, tax_bp = self._tax(fields["tax"]) if "tax" in fields else ("", 0)
        on = (_EPOCH + timedelta(microseconds=from_us)).date()
        long_term = self._steps(fields.get("long-term"), _DAYS, "days", range(1, DAYS_MAX + 1))
        return Prices(
            currency=self._currency(fields["currency"]),
            rates={each: self._rates.rate(each, on).micros_per_usd for each in self._rates.currencies()},
            house=self._table(fields),
            regions=self._places(fields.get("regions"), None),
            hosts=self._places(fields.get("hosts"), self._hosts),
            minimum_seconds=self._minimum(fields["minimum"]) if "minimum" in fields else 0,
            monthly_bp=percent.get("monthly", 0),
            spot_bp=percent.get("spot", 0),
            upfront_bp=percent.get("upfront", 0),
            refund_bp=percent.get("refund", 0),
            reserved_bp=self._steps(fields.get("reserved"), _YEARS, "years", YEARS_RESERVED),
            long_term=tuple(sorted(long_term.items())),
            tax_name=tax_name,
            tax_bp=tax_bp,
        )

    def _table(self, fields: Mapping[str, Node]) -> Table:
        units = {
            key: self._unit(fields[key])
            for key in ("vcpu", "ram", "disk", "snapshot", "address")
            if key in fields
        }
        egress = self._amount(fields["egress"], timed=False) if "egress" in fields else None
        gpu = self._cards(fields["gpu"]) if "gpu" in fields else {}
        return Table(gpu=gpu, egress=egress, **units)

    def _cards(self, node: Node) -> dict[str, Unit]:
        named: dict[str, tuple[int, int, Unit]] = {}  # by id: how many the name meant, its line, the price
        for key, value in self._entries(node):
            ids, unit = self._kinds(key), self._unit(value)
            for id in ids:
                width, line, _ = named.get(id, (len(ids) + 1, 0, unit))
                if width == len(ids):
                    raise self._bad(key, f"`{id}` has a price already, in line {line}")
                if len(ids) < width:
                    named[id] = (len(ids), _line(key), unit)
        return {id: unit for id, (_, _, unit) in sorted(named.items())}

    def _kinds(self, node: Node) -> tuple[str, ...]:
        words, colon, profile = self._text(node).partition(":")
        try:
            ids = find_kinds(words)
        except UnknownName as error:
            raise self._bad(node, f"no GPU is known by the name `{words}`", error.hint) from None
        if not colon:
            return ids
        sliced = tuple(f"{id}:{profile.strip()}" for id in ids if share_ppm(id, profile.strip()) is not None)
        if not sliced:
            raise self._bad(
                node, f"`{words}` has no slice `{profile.strip()}`", "Such as `A100 80GB:1g.10gb`"
            )
        return sliced

    def _unit(self, node: Node) -> Unit:
        if not isinstance(node, yaml.MappingNode):
            return Unit(on_demand=self._amount(node))
        fields = self._fields(node, ("on-demand", "monthly", "spot"))
        if "on-demand" not in fields:
            raise self._bad(node, "a price on demand is missing", "Add `on-demand: 3.06/hour`")
        amounts = {key: self._amount(value) for key, value in fields.items()}
        return Unit(on_demand=amounts["on-demand"], monthly=amounts.get("monthly"), spot=amounts.get("spot"))

    def _amount(self, node: Node, *, timed: bool = True) -> int:
        text = self._text(node)
        match = _AMOUNT.fullmatch(text)
        if not match or bool(match[2]) != timed:
            form = "`3.06/hour`, with second, hour or month" if timed else "`0.05`, for each GB"
            raise self._bad(node, f"`{text[:40]}` is no price", f"Write it as {form}")
        if match[1].startswith("-"):
            raise self._bad(node, f"the price `{text}` is below zero")
        per: Per = match[2] if timed else "month"  # type: ignore[assignment]
        micros = Price(parse_micros(match[1]), "", per).micros_per_month
        if micros > MICROS_MAX:
            raise self._bad(node, f"the price `{text}` is above a milliard a month")
        return micros

    def _places(self, node: Node | None, known: Mapping[str, str] | None) -> dict[str, Table]:
        if node is None:
            return {}
        tables = {}
        for key, value in self._entries(node):
            name = self._text(key)
            if known is not None and name not in known and name not in known.values():
                near = ", ".join(f"`{each}`" for each in nearest_names(name, known))
                raise self._bad(
                    key, f"no host is known by the name `{name}`", f"Did you mean {near}?" if near else ""
                )
            tables[known.get(name, name) if known else name] = self._table(self._fields(value, _PLACE_KEYS))
        return tables

    def _steps(
        self, node: Node | None, form: re.Pattern[str], unit: str, allowed: range | tuple[int, ...]
    ) -> dict[int, int]:
        if node is None:
            return {}
        steps = {}
        for key, value in self._entries(node):
            match = form.fullmatch(self._text(key))
            if not match or int(match[1]) not in allowed:
                raise self._bad(
                    key, f"`{self._text(key)}` is no number of {unit} from {allowed[0]} to {allowed[-1]}"
                )
            steps[int(match[1])] = self._percent(value)
        return steps

    def _tax(self, node: Node) -> tuple[str, int]:
        entries = self._entries(node)
        if len(entries) != 1:
            raise self._bad(node, "one tax is needed, such as `{VAT: 20%}`")
        return self._text(entries[0][0]), self._percent(entries[0][1])

    def _percent(self, node: Node) -> int:
        text = self._text(node)
        match = _PERCENT.fullmatch(text)
        if not match or float(match[1]) > 100:
            raise self._bad(node, f"`{text[:40]}` is no share", "Write it as `12.5%`, up to `100%`")
        return parse_micros(match[1]) * BASIS // 100_000_000

    def _minimum(self, node: Node) -> int:
        match = _SECONDS.fullmatch(self._text(node))
        if not match or int(match[1]) > MINIMUM_SECONDS_MAX:
            raise self._bad(
                node, f"`{self._text(node)[:40]}` is no time up to a day", "Write it as `60 seconds`"
            )
        return int(match[1])

    def _currency(self, node: Node) -> str:
        text = self._text(node)
        if not self._rates.knows(text):
            known = ", ".join(self._rates.currencies())
            raise self._bad(
                node, f"the currency `{text[:40]}` has no exchange rate", f"There are rates for {known}"
            )
        return text

    def _time(self, node: Node) -> int:
        text = self._text(node)
        at = _parsed(datetime.fromisoformat, text) if len(text) > len("2026-01-01") else None
        day = _parsed(date.fromisoformat, text) if at is None else None
        if day is not None:
            at = datetime(day.year, day.month, day.day, tzinfo=UTC)
        if at is None or at.tzinfo is None:
            raise self._bad(node, f"`{text[:40]}` is no date", "Write `2026-01-01`, or a time with its zone")
        return (at - _EPOCH) // timedelta(microseconds=1)

    def _fields(self, node: Node, known: tuple[str, ...]) -> dict[str, Node]:
        fields = {}
        for key, value in self._entries(node):
            word = self._text(key)
            if word not in known:
                near = ", ".join(f"`{each}`" for each in nearest_names(word, known) or known)
                raise self._bad(key, f"`{word[:40]}` means nothing here", f"Here may stand {near}")
            fields[word] = value
        return fields

    def _entries(self, node: Node) -> list[tuple[Node, Node]]:
        if not isinstance(node, yaml.MappingNode):
            raise self._bad(node, "names with values are needed here, such as `V100: 3.06/hour`")
        seen: dict[str, int] = {}
        for key, _ in node.value:
            word = self._text(key)
            if word in seen:
                raise self._bad(key, f"`{word[:40]}` stands here twice, before in line {seen[word]}")
            seen[word] = _line(key)
        return list(node.value)

    def _text(self, node: Node) -> str:
        if not isinstance(node, yaml.ScalarNode) or not node.value.strip():
            raise self._bad(node, "a word or a number is needed here")
        value: str = node.value.strip()
        return value

    def _bad(self, node: Node | None, what: str, hint: str = "") -> BadBook:
        return BadBook(f"{self._name}, line {_line(node)}: {what}", hint=hint)


def _parsed(read: Callable[[str], T], text: str) -> T | None:
    try:
        return read(text)
    except ValueError:
        return None


def _line(node: Any) -> int:
    return int(node.start_mark.line) + 1 if node is not None else 1


def _reason(error: yaml.YAMLError) -> str:
    return " ".join(str(getattr(error, "problem", None) or error).split())[:120]
