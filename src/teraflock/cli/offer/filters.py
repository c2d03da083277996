"""The options that say which offers are meant, and how they become a question."""

from collections.abc import Callable, Sequence
from datetime import date
from typing import Any, Final

import click
import msgspec

from teraflock.base.errors import BadInput, UnknownName, unknown_name
from teraflock.base.money import Period, parse_micros
from teraflock.base.quantities import parse_memory_bytes
from teraflock.offer.model import MODES, SORTS, WITH_GPU, Kind, Mode, PriceLimit, Query, Sort
from teraflock.offer.rules import LARGEST_STORED

Command = Callable[..., Any]


class OfferWords(msgspec.Struct, frozen=True, kw_only=True):
    """The words of the user, as click hands them over."""

    gpu: tuple[str, ...] = ()
    count: str | None = None
    memory_min: str | None = None
    memory_total_min: str | None = None
    vcpu_min: float | None = None
    ram_min: str | None = None
    provider: tuple[str, ...] = ()
    region: tuple[str, ...] = ()
    mode: tuple[str, ...] = ()
    source: tuple[str, ...] = ()
    price_max: str | None = None
    sort: str = "price"
    per: str = "hour"
    currency: str = "USD"
    as_of: str | None = None


def filter_options(command: Command) -> Command:
    """Give a command all options of `OfferWords`."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def _complete_gpu(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    from teraflock.catalog.cards import all_cards

    names = {name for card in all_cards() for name in (card.family, card.id)}
    return sorted(name for name in names if name.lower().startswith(incomplete.lower()))


def _complete_provider(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    from teraflock.catalog.providers import all_providers

    return [each.id for each in all_providers() if each.id.startswith(incomplete.lower())]


class OneOf(click.Choice[str]):
    """One of a few words. Another is told as every unknown name is: with the nearest ones."""

    def __init__(self, kind: str, words: Sequence[str]) -> None:
        super().__init__(words)
        self._kind = kind

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if value not in self.choices:
            there_are = f"There are {', '.join(f'`{word}`' for word in self.choices)}"
            raise unknown_name(self._kind, value, self.choices, see=there_are)
        return str(value)


_OPTIONS: Final = (
    click.option("--gpu", multiple=True, metavar="NAME", help="A card by any of its names; may be repeated.",
                 shell_complete=_complete_gpu),
    click.option("--count", metavar="N", help="GPUs in one instance: `4`, `2-8` or `4+`; `0` for none."),
    click.option("--memory-min", metavar="GB", help="Memory of each GPU, at least."),
    click.option("--memory-total-min", metavar="GB", help="Memory of all GPUs of the instance, at least."),
    click.option("--vcpu-min", type=click.FloatRange(min=0), metavar="N", help="vCPUs, at least."),
    click.option("--ram-min", metavar="GB", help="Main memory, at least."),
    click.option("--provider", multiple=True, metavar="NAME", help="A cloud; may be repeated.",
                 shell_complete=_complete_provider),
    click.option("--region", multiple=True, metavar="TEXT", help="Part of a region's or zone's name; may be repeated."),
    click.option("--mode", multiple=True, type=OneOf("mode", MODES), help="How it is bought; may be repeated."),
    click.option("--source", multiple=True, metavar="NAME", help="What was imported under this name; may be repeated."),
    click.option("--price-max", metavar="AMOUNT", help="For the instance, in `--currency` per `--per`."),
    click.option("--sort", type=OneOf("order", SORTS), default="price", show_default=True, help="What is cheapest."),
    click.option("--per", type=OneOf("period", ("hour", "month")), default="hour", show_default=True,
                 help="Period of the prices shown; a month is 730 hours."),
    click.option("--currency", default="USD", show_default=True, metavar="CODE", help="Currency of the prices shown."),
    click.option("--as-of", metavar="DATE", help="Prices as they stood on that day, such as `2022-12-31`."),
)  # fmt: skip


def query_from(asked: OfferWords, known_providers: Callable[[], list[str]]) -> Query:
    """The question the words mean. What nobody knows is an error with the nearest names."""
    from teraflock.catalog.names import find_kinds

    gpus = tuple(dict.fromkeys(id for name in asked.gpu for id in find_kinds(name)))
    count_min, count_max = parse_count(asked.count)
    kinds: tuple[Kind, ...] = ("none",) if count_max == 0 else WITH_GPU
    modes: tuple[Mode, ...] = asked.mode  # type: ignore[assignment]  # click has checked the choice
    sort: Sort = asked.sort  # type: ignore[assignment]
    return Query(
        kinds=kinds,
        gpus=gpus,
        providers=tuple(dict.fromkeys(parse_provider(name, known_providers) for name in asked.provider)),
        regions=asked.region,
        modes=modes,
        sources=asked.source,
        count_min=count_min,
        count_max=count_max,
        memory_bytes_min=_memory(asked.memory_min),
        memory_total_bytes_min=_memory(asked.memory_total_min),
        vcpus_min=asked.vcpu_min,
        ram_bytes_min=_memory(asked.ram_min),
        price_max=_price_max(asked) if asked.price_max else None,
        as_of=parse_day(asked.as_of) if asked.as_of else None,
        sort=sort,
    )


def _memory(text: str | None) -> int | None:
    return min(parse_memory_bytes(text), LARGEST_STORED) if text else None


def parse_provider(name: str, known_providers: Callable[[], list[str]]) -> str:
    from teraflock.catalog.providers import all_providers, find_provider

    try:
        return find_provider(name).id
    except UnknownName:
        known = known_providers()  # clouds that only an imported catalog names
        if name.casefold() in known:
            return name.casefold()
        names = [*known, *(word for each in all_providers() for word in each.names)]
        raise unknown_name("provider", name, names, see="`tera providers` lists them all") from None


def parse_count(text: str | None) -> tuple[int | None, int | None]:
    """`"4"` → (4, 4); `"2-8"` → (2, 8); `"4+"` → (4, None)."""
    if text is None:
        return None, None
    low, dash, high = text.strip().partition("-")
    if low.endswith("+") and not dash:
        low, high = low[:-1], ""
    elif not dash:
        high = low
    if not _whole(low) or (high and not _whole(high)) or (dash and not high):
        raise BadInput(f"`{text}` is no number of GPUs", hint="Write it as `4`, `2-8` or `4+`")
    if high and int(high) < int(low):
        raise BadInput(
            f"No number of GPUs lies between {low} and {high}", hint=f"Did you mean `{high}-{low}`?"
        )
    return int(low), int(high) if high else None


COUNT_DIGITS_MAX: Final = 9  # the database counts no further


def _whole(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= COUNT_DIGITS_MAX


def _price_max(asked: OfferWords) -> PriceLimit:
    per: Period = asked.per  # type: ignore[assignment]  # click has checked the choice
    text = asked.price_max or ""
    try:
        micros = parse_micros(text)
    except ValueError:
        raise BadInput(
            f"`{text}` is no amount of money", hint="Write a number; `--currency` and `--per` say of what"
        ) from None
    if micros < 0:
        raise BadInput(f"No price is at most `{text}`", hint="Give an amount of zero or more")
    return PriceLimit(micros, asked.currency.upper(), per)


def parse_day(text: str) -> date:
    """A day; of a month or a year its last, since that is when all of it had been."""
    parts = text.strip().split("-")
    try:
        numbers = [int(part) for part in parts if part.isascii() and part.isdigit()]
        if len(numbers) != len(parts) or not 1 <= len(parts) <= 3 or len(parts[0]) != 4:
            raise ValueError
        if len(numbers) == 1:
            return date(numbers[0], 12, 31)
        if len(numbers) == 2:
            year, month = numbers
            first = date(year, month, 1)
            return date.fromordinal(first.replace(year + month // 12, month % 12 + 1).toordinal() - 1)
        return date(*numbers)
    except ValueError:
        raise BadInput(f"`{text}` is no date", hint="Write it as `2022-12-31`, `2022-12` or `2022`") from None
