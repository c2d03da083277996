"""Values: an offer and its source, a query for offers, and its result."""

from datetime import date
from typing import Final, Literal, get_args

import msgspec

from teraflock.base.money import Period, Price
from teraflock.catalog.places import NO_FILTER, PlaceFilter

Mode = Literal["on-demand", "spot", "bid", "monthly", "reserved", "free", "owned"]
MODES: Final[tuple[Mode, ...]] = get_args(Mode)

Kind = Literal["gpu", "other", "unstated", "none"]
"""The accelerator of the machine: a known GPU, another accelerator, an unnamed GPU, or none."""
WITH_GPU: Final[tuple[Kind, ...]] = ("gpu", "other", "unstated")

PriceStatus = Literal["priced", "unknown", "refused"]
"""Priced, without a known price, or refused because the price is implausible. Refused offers are shown only on request
and never chosen."""

Sort = Literal[
    "price", "price-per-gpu", "price-per-tflops", "price-per-gb", "price-per-fp64", "price-per-fp16", "price-per-int8",
    "price-per-fp8",
]  # fmt: skip
SORTS: Final[tuple[Sort, ...]] = get_args(Sort)

Basis = Literal["instance", "gpu"]

FAR_PRICE: Final = "far:price"

PART_MEMORY_APART: Final = 0.2
"""Slices with the same share of a card differ twofold in memory. A seventh of a card is a seventh off an eighth."""

FLAGS: Final[dict[str, str]] = {
    "price-unknown": "the source has no price",
    "price-refused": "the price is implausible; the note says why",
    "from-price": "the lowest price of a range; the machine is not fully specified",
    "free": "free of charge, with limits",
    "inferred:count": "the number of GPUs is not stated; inferred from the context",
    "inferred:currency": "the currency is not stated; inferred from the context",
    "inferred:gpu": "the GPU is not fully named; inferred from the context",
    "inferred:name": "the instance type is not named; inferred from its figures",
    "inferred:variant": "the name does not say which variant of the card it is; the most common one is assumed",
    "inferred:price": "the price of the machine was computed; the note says how",
    "suspect:memory": "sources disagree about the GPU memory",
    "suspect:ram": "the RAM is probably wrong; filters ignore it",
    "suspect:price": "the price may not cover the whole machine",
    FAR_PRICE: "the price is far from that of other offers of the same GPU",
    "corrected:memory": "the source has the memory of the whole node, or another unit; corrected to that of the card",
    "corrected:count": "the source has another number of GPUs than the provider; corrected",
    "price-per-gpu": "quoted per GPU; multiplied by the number of GPUs",
    "host-added": "the source has separate prices for GPU and host; this is their sum",
    "unclear:host": "the source does not say whether the price includes the host",
    "gpu-only": "the price is for the GPU only; no matching host was found",
    "slice": "a part of a card",
    "spot-not-cheaper": "the spot price is not below the on-demand price",
}
"""All flags of offers, with their meaning. Flags are stable, because scripts read them."""

DOUBTFUL_PRICE: Final = ("suspect:price", "from-price", "gpu-only", FAR_PRICE)
"""An offer with one of these flags is listed but never chosen."""
LIVE_PREFIX: Final = "live-"
AVAILABLE_MINUTES: Final = 15
"""How old an answer about free machines may be. `tera plan --available` uses no older ones."""
"""Sources with what accounts at a provider listed: `live-lambda`."""

NOTHING_EXCLUDED: Final = (
    "no place is called `{name}`, so `--not-in` excludes nothing; see `tera offers regions`"
)

NO_RESERVED: Final = (
    "The public catalogs have no reserved prices; ask the provider and import them as your own"
)
"""A hint for searches in which the purchase mode `reserved` finds nothing."""
SUSPECT_RAM: Final = "suspect:ram"


class Offer(msgspec.Struct, frozen=True, gc=False):
    """Importers and stores build offers by position, which is five times faster. Other code uses names."""

    source: str
    """The name of the import. Importing the same name again replaces all its offers."""
    provider: str
    kind: Kind
    standing: PriceStatus
    id: int = 0
    """Stable across imports: depends on source, provider, place, shape and mode, not on the price."""
    cited: str = ""
    """Where in the source the offer is."""
    region: str = ""
    """As in the source. Several regions are separated by `|`."""
    zone: str = ""
    instance_type: str = ""
    gpu: str = ""
    """Id of a known card or accelerator."""
    gpu_name: str = ""
    """As in the source."""
    gpu_count: int | None = None
    gpu_share: float = 1.0
    """The fraction of a card that each GPU is, such as 0.25."""
    gpu_memory_bytes: int | None = None
    """Memory of one GPU or one slice."""
    gpu_tflops: float | None = None
    """FP32 speed of one GPU or one slice, without tensor cores."""
    vcpus: float | None = None
    cpu: str = ""
    ram_bytes: int | None = None
    disk_gb: float | None = None
    network_gbps: float | None = None
    mode: Mode | None = None
    term_months: int | None = None
    quoted: Price | None = None
    """The price as in the source, before any conversion."""
    basis: Basis = "instance"
    """Whether `quoted` is for the whole instance or for one GPU."""
    currency: str = ""
    price_micros_per_month: int | None = None
    """Price of the whole instance for 730 hours, in `currency`. Exact. `None` unless the offer is priced."""
    since: str = ""
    """First date with this price, as precise as known: `2019`, `2019-01` or `2019-01-23`."""
    as_of: str = ""
    """Last date on which this price was confirmed, in the same format."""
    until: str = ""
    """Empty for a current offer. Otherwise the date on which the price changed or the offer disappeared."""
    flags: tuple[str, ...] = ()
    note: str = ""
    outdated: bool = False
    """Whether another offer has a newer price of the same machine. Computed by imports."""

    @property
    def gpu_memory_total_bytes(self) -> int | None:
        if self.gpu_memory_bytes is None or self.gpu_count is None:
            return None
        return self.gpu_memory_bytes * self.gpu_count


class PriceLimit(msgspec.Struct, frozen=True):
    """A maximum price for the whole instance."""

    micros: int
    currency: str
    per: Period


class GpuPart(msgspec.Struct, frozen=True):
    """A part of a card that the user names. Slices with the same share of a card can differ in memory."""

    share: float
    memory_bytes: int

    @property
    def memory_about(self) -> tuple[int, int]:
        """The least and the most memory of an offer for it: some lists multiply the card's memory by the share."""
        return round((1 - PART_MEMORY_APART) * self.memory_bytes), round(
            (1 + PART_MEMORY_APART) * self.memory_bytes
        )


class Query(msgspec.Struct, frozen=True, kw_only=True):
    """A search for offers. An empty filter matches all offers. A filter never matches an offer without its figure."""

    kinds: tuple[Kind, ...] = WITH_GPU
    gpus: tuple[str, ...] = ()
    """Ids of cards and accelerators. If there are any, `kinds` is ignored."""
    providers: tuple[str, ...] = ()
    places: PlaceFilter = NO_FILTER
    modes: tuple[Mode, ...] = ()
    sources: tuple[str, ...] = ()
    count_min: int | None = None
    count_max: int | None = None
    memory_bytes_min: int | None = None
    memory_total_bytes_min: int | None = None
    vcpus_min: float | None = None
    ram_bytes_min: int | None = None
    price_max: PriceLimit | None = None
    as_of: date | None = None
    """Search the prices of that day, including past ones."""
    newer_than: str = ""
    """Only prices that were confirmed on this date or later. Excludes prices of unknown date."""
    slices: bool = False
    """Whether to include parts of cards."""
    parts: tuple[GpuPart, ...] = ()
    """Only these parts of cards. Needs `slices`."""
    outdated: bool = False
    """Whether to include offers for which there is a newer price of the same machine."""
    sort: Sort = "price"
    """A sort by a figure of cards, such as `price-per-fp64`, needs `gpus`."""
    refused: bool = False
    """Whether to include offers with a refused price, after all others."""


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """Facts about all offers that match, shown or not."""

    matched: int
    newest: str
    oldest: str
    """The newest and oldest `as_of` among them."""
    left_out: tuple[tuple[str, int], ...]
    """Reasons why offers do not match, with the number of offers, such as ("without a GPU", 6)."""


class OffersFound(Outcome, frozen=True, kw_only=True):
    offers: tuple[Offer, ...]


class OfferLine(msgspec.Struct, frozen=True):
    """Offers that differ only in their place."""

    offer: Offer
    places: tuple[str, ...]
    offers: int


class Listing(Outcome, frozen=True, kw_only=True):
    lines: tuple[OfferLine, ...]


class Shape(msgspec.Struct, frozen=True, gc=False):
    """A group of offers of one date that differ only in place and price.

    Stores build shapes by position, which is faster. Other code uses names.
    """

    provider: str
    instance_type: str
    kind: Kind
    gpu: str
    gpu_name: str
    gpu_count: int | None
    gpu_share: float
    gpu_memory_bytes: int | None
    vcpus: float | None
    ram_bytes: int | None
    mode: Mode | None
    term_months: int | None
    standing: PriceStatus
    currency: str
    doubtful: bool
    """Whether its price may not cover exactly the machine."""
    price_micros_per_month: int | None
    """The lowest price in the group."""
    offers: int
    as_of: str
    outdated: bool = False
    """Whether there is a newer price of the same machine."""


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """A source of offers. Each import replaces all its offers."""

    name: str
    layout: str
    import_number: int
    place: str
    """The path or URL of the last import."""
    checksum: str
    as_of: str
    imported_at: str
    offers: int
    currencies: str
    url: str = ""
    etag: str = ""
    last_modified: str = ""


class Removal(msgspec.Struct, frozen=True):
    """The filter that removed the last offers, and the number of offers it removed."""

    filter: str
    removed: int
