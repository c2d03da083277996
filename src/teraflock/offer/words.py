"""Parse the filters of `tera offers` and the API into a `Query`."""

import re
from collections.abc import Callable, Sequence
from datetime import date
from typing import TYPE_CHECKING, Annotated, Final

import msgspec
from msgspec import Meta

from teraflock.base.amounts import parse_money
from teraflock.base.errors import BadInput, UnknownName, one_of, unknown_name
from teraflock.base.money import Period
from teraflock.base.quantities import Word, Words, parse_memory_bytes, parse_number
from teraflock.catalog.cards import all_cards
from teraflock.catalog.figures import CardNeeds, cards_meeting, codec_named
from teraflock.catalog.places import place_filter
from teraflock.catalog.providers import all_providers, find_provider
from teraflock.offer.model import MODES, SORTS, WITH_GPU, GpuPart, Kind, PriceLimit, Query
from teraflock.offer.rules import LARGEST_STORED, figures_of_cards

if TYPE_CHECKING:
    from teraflock.catalog.figures import CardNeeds

PERIODS: Final[tuple[Period, ...]] = ("hour", "month")


class OfferWords(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The filters as text. The types limit their length for the API; `query_from` parses and checks them."""

    gpu: Annotated[Words, Meta(description="A GPU model, in any spelling. Can be repeated.")] = ()
    count: Annotated[
        Word | None, Meta(description="GPUs per instance: `4`, `2-8` or `4+`; `0` for none.")
    ] = None
    memory_min: Annotated[Word | None, Meta(description="Minimum memory of each GPU: `48` or `48GB`.")] = None
    memory_total_min: Annotated[
        Word | None, Meta(description="Minimum memory of all GPUs of an instance together.")
    ] = None
    fp64_min: Annotated[
        Word | None,
        Meta(description="Minimum double-precision TFLOPS of each GPU, with tensor cores if it has any."),
    ] = None
    int8_min: Annotated[Word | None, Meta(description="Minimum dense INT8 TOPS of each GPU.")] = None
    fp8_min: Annotated[Word | None, Meta(description="Minimum dense FP8 TFLOPS of each GPU.")] = None
    cores_min: Annotated[Word | None, Meta(description="Minimum number of cores of each GPU.")] = None
    graphics: Annotated[bool, Meta(description="Only GPUs that draw: OpenGL and Vulkan.")] = False
    ray_tracing: Annotated[bool, Meta(description="Only GPUs with ray-tracing cores.")] = False
    encodes: Annotated[
        Word | None, Meta(description="Only GPUs that encode this video format: `H.264`, `HEVC` or `AV1`.")
    ] = None
    vcpu_min: Annotated[Word | None, Meta(description="Minimum number of vCPUs.")] = None
    ram_min: Annotated[Word | None, Meta(description="Minimum RAM.")] = None
    provider: Annotated[Words, Meta(description="A provider, by any of its names. Can be repeated.")] = ()
    region: Annotated[
        Words,
        Meta(
            description="Where: a continent, `EU`, `EEA`, a country, or part of the name of a region, zone or city."
            " Can be repeated."
        ),
    ] = ()
    country: Annotated[
        Words, Meta(description="Only this country, by name or ISO code. Can be repeated.")
    ] = ()
    not_in: Annotated[
        Words,
        Meta(
            description="Nowhere in this area, written as for `region`. Excludes unknown places. Can be repeated."
        ),
    ] = ()
    mode: Annotated[Words, Meta(description="A purchase mode. Can be repeated.")] = ()
    source: Annotated[Words, Meta(description="The name of an imported catalog. Can be repeated.")] = ()
    price_max: Annotated[
        Word | None, Meta(description="Maximum price of an instance, in `currency` per `per`.")
    ] = None
    sort: Annotated[
        Word,
        Meta(
            description="`price`, `price-per-gpu`, `price-per-tflops` (FP32), `price-per-gb`, `price-per-fp64`,"
            " `price-per-fp16`, `price-per-int8` or `price-per-fp8`."
            " The last four list only GPU models with the figure."
        ),
    ] = "price"
    per: Annotated[Word, Meta(description="Period of the prices: `hour`, or `month` of 730 hours.")] = "hour"
    currency: Annotated[Word, Meta(description="Currency of the prices.")] = "USD"
    newer_than: Annotated[
        Word | None,
        Meta(description="Only prices confirmed since: `90d`, `12w`, `6m`, `1y`, `2026-01-31`."),
    ] = None
    slices: Annotated[bool, Meta(description="Include parts of GPUs.")] = False
    as_of: Annotated[Word | None, Meta(description="Use the prices of this date, such as `2022-12-31`.")] = (
        None
    )

    @property
    def period(self) -> Period:
        return "month" if self.per == "month" else "hour"


def query_from(asked: OfferWords, known_providers: Callable[[], list[str]], today: date) -> Query:
    """Parse the filters. Unknown names get an error with suggestions."""
    gpus, parts = _gpus(asked), parts_named(asked.gpu)
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
        places=place_filter(asked.region, asked.country, asked.not_in),
        modes=tuple(mode for mode in MODES if mode in asked.mode),
        sources=asked.source,
        count_min=count_min,
        count_max=count_max,
        memory_bytes_min=_memory(asked.memory_min),
        memory_total_bytes_min=_memory(asked.memory_total_min),
        vcpus_min=parse_number(asked.vcpu_min, "vCPUs") if asked.vcpu_min is not None else None,
        ram_bytes_min=_memory(asked.ram_min),
        price_max=_price_max(asked) if asked.price_max is not None else None,
        as_of=parse_day(asked.as_of) if asked.as_of is not None else None,
        newer_than=parse_age(asked.newer_than, today) if asked.newer_than is not None else "",
        slices=asked.slices or bool(parts),
        parts=parts,
        sort=next(sort for sort in SORTS if sort == asked.sort),
    )


def _gpus(asked: OfferWords) -> tuple[str, ...]:
    """Return the ids of the named GPU models that meet all conditions on figures. Empty if there are no conditions."""
    # Imported here because only some queries need them.
    from teraflock.catalog.names import find_kinds

    named = tuple(dict.fromkeys(id for name in asked.gpu for id in find_kinds(name)))
    needs, measured = _needs(asked), figures_of_cards(asked.sort)
    if not needs and not measured:
        return named
    found = cards_meeting(needs, all_cards())
    kept = tuple(id for id in named or found if id in found and (not measured or id in measured))
    if not kept:
        raise BadInput(
            f"No {'requested' if named else 'known'} GPU model meets these conditions",
            hint="`tera gpus NAME` shows the figures of a GPU model",
        )
    return kept


def parts_named(names: Sequence[str]) -> tuple[GpuPart, ...]:
    """Return the named parts of GPUs. Empty if the names mean whole GPUs."""
    from teraflock.catalog.names import find_parts  # imported here because only `--gpu` needs it

    parts = [find_parts(name) for name in names]
    if any(parts) and not all(parts):
        raise BadInput(
            "`--gpu` names both whole GPUs and slices", hint="Search for them in two separate commands"
        )
    return tuple(
        dict.fromkeys(GpuPart(part.share, part.memory_bytes) for found in parts for _, part in found)
    )


def _needs(asked: OfferWords) -> "CardNeeds":
    return CardNeeds(
        fp64_min=parse_number(asked.fp64_min, "TFLOPS") if asked.fp64_min else None,
        int8_min=parse_number(asked.int8_min, "TOPS") if asked.int8_min else None,
        fp8_min=parse_number(asked.fp8_min, "TFLOPS") if asked.fp8_min else None,
        cores_min=parse_number(asked.cores_min, "cores") if asked.cores_min else None,
        graphics=asked.graphics,
        ray_tracing=asked.ray_tracing,
        encodes=codec_named(asked.encodes) if asked.encodes else None,
    )


def _memory(text: str | None) -> int | None:
    return min(parse_memory_bytes(text), LARGEST_STORED) if text is not None else None


def parse_provider(name: str, known_providers: Callable[[], list[str]]) -> str:
    try:
        return find_provider(name).id
    except UnknownName:
        known = known_providers()  # includes providers that only imported catalogs have
        if name.casefold() in known:
            return name.casefold()
        names = [*known, *(word for each in all_providers() for word in each.names)]
        raise unknown_name("provider", name, names, see="`tera providers` lists all of them") from None


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
        raise BadInput(f"`{text}` is not a number of GPUs", hint="Write it as `4`, `2-8` or `4+`")
    if high and int(high) < int(low):
        raise BadInput(f"The range of GPUs `{low}-{high}` is reversed", hint=f"Did you mean `{high}-{low}`?")
    return int(low), int(high) if high else None


COUNT_DIGITS_MAX: Final = 9  # fits a column of the database


def _whole(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= COUNT_DIGITS_MAX


def _price_max(asked: OfferWords) -> PriceLimit:
    money = parse_money(asked.price_max or "", asked.currency.upper())
    return PriceLimit(money.micros, money.currency, asked.period)


_AGE: Final = re.compile(r"\s*(\d{1,5})\s*([dwmy])\s*", re.ASCII | re.IGNORECASE)
_DAYS: Final = {"d": 1, "w": 7, "m": 30, "y": 365}


def parse_age(text: str, today: date) -> str:
    """Parse `90d`, `12w`, `6m`, `1y` or a date into the first day that is new enough."""
    match = _AGE.fullmatch(text)
    if match is None:
        if "-" not in text:
            raise BadInput(
                f"`{text}` is not an age of prices",
                hint="Write it as `90d`, `12w`, `6m`, `1y` or `2026-08-01`",
            )
        day = parse_day(text)
        if text.strip() > today.isoformat():
            raise BadInput(f"`{text}` is in the future", hint="Give today or an earlier date")
        return text.strip() if len(text.strip()) == len("2026-08") else day.isoformat()
    days = int(match[1]) * _DAYS[match[2].lower()]
    return date.fromordinal(max(1, today.toordinal() - days)).isoformat()


def parse_day(text: str) -> date:
    """Parse a date. A month or a year means its last day."""
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
        raise BadInput(
            f"`{text}` is not a date", hint="Write it as `2022-12-31`, `2022-12` or `2022`"
        ) from None
