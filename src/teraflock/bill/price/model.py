"""Prices by GPU model, by quantity, by place and by time.

Invariants:
- an amount is an integer in micro-units for one GPU, vCPU or GB per month of 730 hours; for other currencies it is
  converted with the book's own rates and rounded once, so it never changes either;
- at any time at most one period applies: that of the newest book with a period for that time;
- a period never starts before its book was accepted, so no book changes a price in the past.

`bill/verify` uses this module too. It is the only code that charges and their verification share.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

import msgspec

from teraflock.base.money import HOURS_PER_MONTH, divided
from teraflock.catalog.cards import cards_by_id, slices_of

FOREVER_US: Final = 1 << 62
BASIS: Final = 10_000  # basis points, the unit of discounts and taxes
IMAGE: Final = "image"
"""The purchase mode of images. Their storage counts like snapshots, with its own price."""
ADDRESS: Final = "address"
"""The purchase mode of public addresses. One counts like a GB of snapshots, with its own price."""
DATA: Final = "data"
"""The purchase mode of datasets. They count like snapshots, with their own price."""
BID: Final = "bid"
"""The purchase mode of bids. An auction sets the price of their cards; all other parts have spot prices."""
YEARS_RESERVED: Final = (1, 2, 3)


class Unit(msgspec.Struct, frozen=True, kw_only=True):
    """The price of one unit per month."""

    on_demand: int
    monthly: int | None = None
    """The price if a whole month is bought. None: the book's discount applies."""
    spot: int | None = None


class PriceTable(msgspec.Struct, frozen=True, kw_only=True):
    """Prices of one place. A missing price is looked up in the next wider place."""

    gpu: Mapping[str, Unit] = {}
    """By the catalog's id of the GPU model or slice."""
    vcpu: Unit | None = None
    ram: Unit | None = None
    disk: Unit | None = None
    snapshot: Unit | None = None
    image: Unit | None = None
    """A GB of images made from instances. None: as snapshots."""
    data: Unit | None = None
    """A GB of datasets. None: as snapshots."""
    address: Unit | None = None
    """A public address. None: it costs nothing."""
    egress: int | None = None
    """Per GB of outgoing traffic, regardless of time."""


class PriceSheet(msgspec.Struct, frozen=True, kw_only=True):
    currency: str
    rates: Mapping[str, int]
    """Micro-units per US dollar of each currency when the book was accepted."""
    general: PriceTable = msgspec.field(name="house")
    """Prices without a region or host. Stored books call them `house`."""
    regions: Mapping[str, PriceTable] = {}
    hosts: Mapping[str, PriceTable] = {}
    minimum_seconds: int = 0
    """The minimum duration that a run is charged for."""
    monthly_bp: int = 0
    spot_bp: int = 0
    spot_for_compute: bool = False
    """Spot prices apply only to GPUs, vCPUs and RAM. False in books from before this rule: there, spot also lowers the
    prices of disks and snapshots, so that charges of that time do not change."""
    reserved_bp: Mapping[int, int] = {}
    """Discount on the monthly price, by years."""
    upfront_bp: int = 0
    """Discount on the amount that is paid upfront, beyond the next instalment."""
    long_term: tuple[tuple[int, int], ...] = ()
    """(days, discount): the discount that applies after that many days of one run."""
    refund_bp: int = 0
    """Refund for the rest of a month that ends early."""
    tax_name: str = ""
    tax_bp: int = 0


class Units(NamedTuple):
    """Monthly prices of the parts of an instance, in one currency."""

    gpu: int = 0
    vcpu: int = 0
    ram: int = 0
    disk: int = 0
    snapshot: int = 0
    egress: int = 0


class PricePlace(NamedTuple):
    host: str = ""
    region: str = ""


class Period(msgspec.Struct, frozen=True, kw_only=True):
    version: int
    from_us: int
    until_us: int
    prices: PriceSheet


class PriceBook:
    """All periods of all books."""

    def __init__(self, periods: Iterable[Period]) -> None:
        self._all = every = sorted(periods, key=lambda period: (period.version, period.from_us))
        self.currency = every[0].prices.currency if every else "USD"
        """The currency of the first book: the default for projects."""
        self.is_empty = not every
        edges = sorted({us for period in every for us in (period.from_us, period.until_us)})
        self._starts: list[int] = []
        self._periods: list[Period | None] = []
        for start_us in edges:
            counts = None
            for period in every:
                if period.from_us <= start_us < period.until_us:
                    counts = period
            if not self._periods or self._periods[-1] is not counts:
                self._starts.append(start_us)
                self._periods.append(counts)

    def at(self, us: int) -> Period | None:
        place = bisect_right(self._starts, us) - 1
        return self._periods[place] if place >= 0 else None

    def until(self, us: int) -> int:
        """The time of the next price change after `us`."""
        place = bisect_right(self._starts, us)
        return self._starts[place] if place < len(self._starts) else FOREVER_US

    def of(self, version: int, us: int) -> Period | None:
        """The period of one book at a time, even if a newer book applies."""
        own = [period for period in self._all if period.version == version]
        return next((period for period in own if period.from_us <= us < period.until_us), None)

    def changes(self, from_us: int, until_us: int) -> list[int]:
        """The times, strictly between two times, at which another period starts to apply."""
        return self._starts[bisect_right(self._starts, from_us) : bisect_right(self._starts, until_us - 1)]


class PricedPeriod:
    """The prices of one period in one currency, cached."""

    def __init__(self, period: Period, currency: str) -> None:
        self.period = period
        self.currency = currency
        self._units: Callable[[str, str, str, str], Units] = lru_cache(maxsize=4096)(self._worked_out)

    def units(self, gpu: str, mode: str, place: PricePlace) -> Units:
        """The price of a GPU model in a purchase mode (on-demand, spot or monthly) at a place."""
        prices, (host, region) = self.period.prices, place  # most places have no price of their own
        return self._units(
            gpu, mode, host if host in prices.hosts else "", region if region in prices.regions else ""
        )

    def of_bid(self, gpu: str, place: PricePlace, card_micros_per_hour: int, currency: str) -> Units:
        """The prices of a bid that pays this much for each card, in this currency."""
        rates = self.period.prices.rates
        month = card_micros_per_hour * HOURS_PER_MONTH
        if currency != self.currency:
            month = divided(month * rates[self.currency], rates[currency])
        return self.units(gpu, "spot", place)._replace(gpu=month)

    def _worked_out(self, gpu: str, mode: str, host: str, region: str) -> Units:
        prices = self.period.prices
        tables = [
            table for table in (prices.hosts.get(host), prices.regions.get(region), prices.general) if table
        ]
        found = {name: _narrowest(tables, name) for name in ("vcpu", "ram", "disk", "snapshot")}
        if mode == IMAGE:
            found["snapshot"] = _narrowest(tables, "image") or found["snapshot"]
        if mode == DATA:
            found["snapshot"] = _narrowest(tables, "data") or found["snapshot"]
        if mode == ADDRESS:
            found["snapshot"] = _narrowest(tables, "address")
        micros = {
            name: self._exchanged(_in_mode(unit, _mode_of(name, mode, prices), prices))
            for name, unit in found.items()
        }
        gpu_micros = self._exchanged(_in_mode(_gpu_unit(tables, gpu), mode, prices))
        egress = next((table.egress for table in tables if table.egress is not None), 0)
        return Units(gpu=gpu_micros, egress=self._exchanged(egress), **micros)

    def _exchanged(self, micros: int) -> int:
        prices = self.period.prices
        if self.currency == prices.currency:
            return micros
        return divided(micros * prices.rates[self.currency], prices.rates[prices.currency])


def _mode_of(name: str, mode: str, prices: PriceSheet) -> str:
    """The mode whose price applies to one part. Storage never has spot prices."""
    is_kept = mode == "spot" and prices.spot_for_compute and name not in ("vcpu", "ram")
    return "on-demand" if is_kept else mode


def list_mode(mode: str) -> str:
    """The mode of the list price. Images, datasets and addresses have their own."""
    return mode if mode in (IMAGE, DATA, ADDRESS) else "on-demand"


def discounted(micros: int, bp: int) -> int:
    return divided(micros * (BASIS - bp), BASIS)


def _in_mode(unit: Unit | None, mode: str, prices: PriceSheet) -> int:
    if unit is None:
        return 0
    if mode == "spot":
        return unit.spot if unit.spot is not None else discounted(unit.on_demand, prices.spot_bp)
    if mode == "monthly":
        return unit.monthly if unit.monthly is not None else discounted(unit.on_demand, prices.monthly_bp)
    return unit.on_demand


def _narrowest(tables: Sequence[PriceTable], name: str) -> Unit | None:
    units = (getattr(table, name) for table in tables)
    return next((unit for unit in units if unit is not None), None)


def _gpu_unit(tables: Sequence[PriceTable], gpu: str) -> Unit | None:
    """The most specific price of a GPU model. A slice without one costs its share of the card."""
    if (unit := _named(tables, gpu)) is not None or ":" not in gpu:
        return unit
    card, _, profile = gpu.partition(":")
    whole, share = _named(tables, card), share_ppm(card, profile)
    if whole is None or share is None:
        return None
    parts = [None if us is None else divided(us * share, 1_000_000) for us in (whole.monthly, whole.spot)]
    return Unit(on_demand=divided(whole.on_demand * share, 1_000_000), monthly=parts[0], spot=parts[1])


def _named(tables: Sequence[PriceTable], gpu: str) -> Unit | None:
    return next((table.gpu[gpu] for table in tables if gpu in table.gpu), None)


def share_ppm(card_id: str, profile: str) -> int | None:
    """A slice's share of its card in millionths; None if there is no such slice."""
    card = cards_by_id().get(card_id)
    shares = {part.profile: part.share for part in slices_of(card)} if card else {}
    return round(shares[profile] * 1_000_000) if profile in shares else None
