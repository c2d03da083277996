"""The words of a question about offers, as the command line and the API take them, and the `Query` they mean."""

from collections.abc import Callable
from datetime import date
from typing import Annotated, Final

import msgspec
from msgspec import Meta

from teraflock.base.errors import BadInput, UnknownName, one_of, unknown_name
from teraflock.base.money import Period, parse_micros
from teraflock.base.quantities import Word, Words, parse_memory_bytes, parse_number
from teraflock.offer.model import MODES, SORTS, WITH_GPU, Kind, PriceLimit, Query
from teraflock.offer.rules import LARGEST_STORED

PERIODS: Final[tuple[Period, ...]] = ("hour", "month")


class OfferWords(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A question as it was asked. The bounds are those of the API; `query_from` checks what the words mean."""

    gpu: Annotated[Words, Meta(description="A GPU model by any of its names; may be repeated.")] = ()
    count: Annotated[
        Word | None, Meta(description="GPUs in one instance: `4`, `2-8` or `4+`; `0` for none.")
    ] = None
    memory_min: Annotated[Word | None, Meta(description="Least memory of each GPU: `48`, `48GB`.")] = None
    memory_total_min: Annotated[Word | None, Meta(description="Least memory of all GPUs of an instance.")] = (
        None
    )
    vcpu_min: Annotated[Word | None, Meta(description="Least number of vCPUs.")] = None
    ram_min: Annotated[Word | None, Meta(description="Least main memory.")] = None
    provider: Annotated[Words, Meta(description="A provider by any of its names; may be repeated.")] = ()
    region: Annotated[Words, Meta(description="Part of the name of a region or zone; may be repeated.")] = ()
    mode: Annotated[Words, Meta(description="A purchase mode; may be repeated.")] = ()
    source: Annotated[Words, Meta(description="The name of an imported catalog; may be repeated.")] = ()
    price_max: Annotated[
        Word | None, Meta(description="Highest price of the instance, in `currency` per `per`.")
    ] = None
    sort: Annotated[
        Word, Meta(description="`price`, `price-per-gpu`, `price-per-tflops` or `price-per-gb`.")
    ] = "price"
    per: Annotated[Word, Meta(description="Period of the prices: `hour`, or `month` of 730 hours.")] = "hour"
    currency: Annotated[Word, Meta(description="Currency of the prices.")] = "USD"
    as_of: Annotated[
        Word | None, Meta(description="Prices as they were on this day, such as `2022-12-31`.")
    ] = None

    @property
    def period(self) -> Period:
        return "month" if self.per == "month" else "hour"


def query_from(asked: OfferWords, known_providers: Callable[[], list[str]]) -> Query:
    """The question that the words mean. Unknown names get an error with suggestions."""
    from teraflock.catalog.names import find_kinds  # here: `tera offers` without `--gpu` needs no names

    gpus = tuple(dict.fromkeys(id for name in asked.gpu for id in find_kinds(name)))
    count_min, count_max = parse_count(asked.count)
    kinds: tuple[Kind, ...] = ("none",) if count_max == 0 else WITH_GPU
    for mode in asked.mode:
        one_of("mode", mode, MODES)
    one_of("order", asked.sort, SORTS)
    one_of("period", asked.per, PERIODS)
    return Query(
        kinds=kinds,
        gpus=gpus,
        providers=tuple(dict.fromkeys(parse_provider(name, known_providers) for name in asked.provider)),
        regions=asked.region,
        modes=tuple(mode for mode in MODES if mode in asked.mode),
        sources=asked.source,
        count_min=count_min,
        count_max=count_max,
        memory_bytes_min=_memory(asked.memory_min),
        memory_total_bytes_min=_memory(asked.memory_total_min),
        vcpus_min=parse_number(asked.vcpu_min, "vCPUs") if asked.vcpu_min else None,
        ram_bytes_min=_memory(asked.ram_min),
        price_max=_price_max(asked) if asked.price_max else None,
        as_of=parse_day(asked.as_of) if asked.as_of else None,
        sort=next(sort for sort in SORTS if sort == asked.sort),
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
    text = asked.price_max or ""
    try:
        micros = parse_micros(text)
    except ValueError:
        raise BadInput(
            f"`{text}` is no amount of money", hint="Write a number; `--currency` and `--per` say of what"
        ) from None
    if micros < 0:
        raise BadInput(f"No price is at most `{text}`", hint="Give an amount of zero or more")
    return PriceLimit(micros, asked.currency.upper(), asked.period)


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
