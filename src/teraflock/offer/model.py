"""The values of this folder: an offer and where it comes from, a question about offers, and its answer."""

from datetime import date
from typing import Final, Literal, get_args

import msgspec

from teraflock.base.money import Period, Price

Mode = Literal["on-demand", "spot", "bid", "monthly", "reserved", "free", "owned"]
MODES: Final[tuple[Mode, ...]] = get_args(Mode)

Kind = Literal["gpu", "other", "unstated", "none"]
"""What the machine computes with: a GPU of the catalog, another accelerator, a GPU that is not named, or no GPU."""
WITH_GPU: Final[tuple[Kind, ...]] = ("gpu", "other", "unstated")

Standing = Literal["priced", "unknown", "refused"]
"""Priced; listed without a price; or its price is absurd and was refused: shown only when asked for, never chosen."""

Sort = Literal["price", "price-per-gpu", "price-per-tflops", "price-per-gb"]
SORTS: Final[tuple[Sort, ...]] = get_args(Sort)

Basis = Literal["instance", "gpu"]

FLAGS: Final[dict[str, str]] = {
    "price-unknown": "the source names no price",
    "price-refused": "the price cannot be true; the note says why",
    "from-price": "the lowest price of a range, for a machine that is not told in full",
    "free": "given away, with limits of its own",
    "inferred:count": "how many GPUs is not stated; taken from the text around it",
    "inferred:currency": "the currency is not stated; taken from the text around it",
    "inferred:gpu": "the GPU is not named in full; taken from the text around it",
    "inferred:name": "the instance type is not named; taken from its figures",
    "inferred:variant": "the name leaves open which variant of the card it is; the commonest was taken",
    "inferred:price": "the machine's price was worked out; the note says how",
    "suspect:memory": "sources disagree about the GPU memory",
    "suspect:ram": "the RAM figure is probably something else; no filter uses it",
    "suspect:price": "the price may cover less than the machine",
    "corrected:memory": "the source gave the node's GPU memory, or another unit; put right by the card",
    "price-per-gpu": "quoted per GPU; multiplied by the number of GPUs",
    "host-added": "the source prices GPU and host apart; this is their sum",
    "unclear:host": "whether the price covers the host beside the GPU is not said",
    "gpu-only": "the source prices the GPU alone, and no host for it could be found",
    "slice": "a part of a card",
    "spot-not-cheaper": "the spot price is not below the on-demand price",
}
"""Every flag an offer may carry, with what it means. Stable: scripts read them."""

DOUBTFUL_PRICE: Final = ("suspect:price", "from-price", "gpu-only")
"""A price with one of these is listed, and never chosen."""
SUSPECT_RAM: Final = "suspect:ram"


class Offer(msgspec.Struct, frozen=True, gc=False):
    """Built by name where people read it; by position where a hundred thousand are built: that is five times faster."""

    source: str
    """The name it was imported under; importing that name again replaces all its offers."""
    provider: str
    kind: Kind
    standing: Standing
    id: int = 0
    """Stable over imports: made of source, provider, place, shape and mode, not of the price."""
    cited: str = ""
    """Where within the source it stands."""
    region: str = ""
    """As the source names it; several stand apart by `|`."""
    zone: str = ""
    instance_type: str = ""
    gpu: str = ""
    """Id of a card or accelerator of the catalog."""
    gpu_name: str = ""
    """As the source writes it."""
    gpu_count: int | None = None
    gpu_share: float = 1.0
    """The part of a card each of the `gpu_count` is: 0.25 for a quarter."""
    gpu_memory_bytes: int | None = None
    """Of one GPU, or of one slice."""
    gpu_tflops: float | None = None
    """FP32 of one GPU without tensor cores, or of one slice."""
    vcpus: float | None = None
    cpu: str = ""
    ram_bytes: int | None = None
    disk_gb: float | None = None
    network_gbps: float | None = None
    mode: Mode | None = None
    term_months: int | None = None
    quoted: Price | None = None
    """The price as the source has it, before anything was worked out."""
    basis: Basis = "instance"
    """What `quoted` buys: the whole instance, or one GPU of it."""
    currency: str = ""
    price_micros_per_month: int | None = None
    """The whole instance for 730 hours in `currency`. Exact; `None` unless the offer is priced."""
    since: str = ""
    """First day on which this price was seen, as precise as known: `2019`, `2019-01` or `2019-01-23`."""
    as_of: str = ""
    """Last day on which this price was confirmed, likewise."""
    until: str = ""
    """Empty while the offer stands; else the day on which the source had another price, or none."""
    flags: tuple[str, ...] = ()
    note: str = ""

    @property
    def gpu_memory_total_bytes(self) -> int | None:
        if self.gpu_memory_bytes is None or self.gpu_count is None:
            return None
        return self.gpu_memory_bytes * self.gpu_count


class PriceLimit(msgspec.Struct, frozen=True):
    """At most so much for the whole instance."""

    micros: int
    currency: str
    per: Period


class Query(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked of the offers. An empty filter lets all pass; a figure an offer does not state fails its filter."""

    kinds: tuple[Kind, ...] = WITH_GPU
    gpus: tuple[str, ...] = ()
    """Ids of cards and accelerators; where any is named, `kinds` says nothing more."""
    providers: tuple[str, ...] = ()
    regions: tuple[str, ...] = ()
    """Part of the name of a region or zone, in any case."""
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
    """Prices as they stood on that day, superseded ones included."""
    sort: Sort = "price"
    refused: bool = False
    """Whether offers whose price was refused are shown too, after all others."""


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of all offers that fit, shown or not."""

    matched: int
    newest: str
    oldest: str
    """The youngest and oldest `as_of` among them."""
    left_out: tuple[tuple[str, int], ...]
    """Why other offers do not fit, and how many, such as ("without a GPU", 6)."""


class Answer(Outcome, frozen=True, kw_only=True):
    offers: tuple[Offer, ...]


class Line(msgspec.Struct, frozen=True):
    """Offers that differ in nothing but where they are."""

    offer: Offer
    places: tuple[str, ...]
    offers: int


class Listing(Outcome, frozen=True, kw_only=True):
    lines: tuple[Line, ...]


class Shape(msgspec.Struct, frozen=True, gc=False):
    """Offers alike in everything that decides time and terms: they differ in place and price only.

    Built by name where people read it, by position where thousands are read at once.
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
    standing: Standing
    currency: str
    doubtful: bool
    """Its price may cover less than the machine, or more."""
    price_micros_per_month: int | None
    """The lowest among them."""
    offers: int
    as_of: str


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """Where offers come from: one name, replaced as a whole by each import."""

    name: str
    layout: str
    import_number: int
    place: str
    """The path or URL it was last read from."""
    checksum: str
    as_of: str
    imported_at: str
    offers: int
    currencies: str
    url: str = ""
    etag: str = ""
    last_modified: str = ""


class Removal(msgspec.Struct, frozen=True):
    """Which filter left nothing, and how many offers had passed all before it."""

    filter: str
    removed: int
