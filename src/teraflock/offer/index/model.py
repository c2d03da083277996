"""The parts of an offer that many offers share. Each distinct part is stored once and has a number."""

from typing import Any, NamedTuple

from teraflock.offer.model import Basis, Kind, Mode, Offer, PriceStatus
from teraflock.offer.rules import usable_ram


class IndexShape(NamedTuple):
    """A shape of one source, unlike the shapes of plans. Same fields and order as in `Offer`."""

    source: str
    provider: str
    kind: Kind
    instance_type: str
    gpu: str
    gpu_name: str
    gpu_count: int | None
    gpu_share: float
    gpu_memory_bytes: int | None
    gpu_tflops: float | None
    vcpus: float | None
    cpu: str
    ram_bytes: int | None
    disk_gb: float | None
    network_gbps: float | None
    ram_usable: int | None


class Terms(NamedTuple):
    standing: PriceStatus
    mode: Mode | None
    term_months: int | None
    quoted_per: Any
    basis: Basis
    currency: str


class IndexPlace(NamedTuple):
    provider: str
    region: str
    zone: str


class Dates(NamedTuple):
    since: str
    as_of: str
    until: str
    outdated: bool


class Words(NamedTuple):
    cited: str
    flags: tuple[str, ...]
    note: str


class Distinct:
    """Stores distinct values, numbered in the order of their arrival."""

    def __init__(self) -> None:
        self.values: list[Any] = []
        self._codes: dict[Any, int] = {}

    def code(self, value: Any) -> int:
        code = self._codes.get(value)
        if code is None:
            code = self._codes[value] = len(self.values)
            self.values.append(value)
        return code

    def forget_codes(self) -> None:
        self._codes.clear()


def parts_of(offer: Offer) -> tuple[IndexShape, IndexPlace, Terms, Dates, Words]:
    return (
        IndexShape(
            offer.source, offer.provider, offer.kind, offer.instance_type, offer.gpu, offer.gpu_name, offer.gpu_count,
            offer.gpu_share, offer.gpu_memory_bytes, offer.gpu_tflops, offer.vcpus, offer.cpu, offer.ram_bytes,
            offer.disk_gb, offer.network_gbps, usable_ram(offer),
        ),
        IndexPlace(offer.provider, offer.region, offer.zone),
        Terms(
            offer.standing, offer.mode, offer.term_months, offer.quoted.per if offer.quoted else None, offer.basis,
            offer.currency,
        ),
        Dates(offer.since, offer.as_of, offer.until, offer.outdated),
        Words(offer.cited, offer.flags, offer.note),
    )  # fmt: skip
