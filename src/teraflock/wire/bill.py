"""Prices, quotes, bills, budgets, credits, purchases and invoices as the API has them.

Amounts are integers of millionths of `currency`, as in the books; nothing is rounded on the way to a client.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from teraflock.wire.instance import ModeWord, Ref, ShapeRequest
from teraflock.wire.word import closed

Month = Annotated[
    str, Meta(pattern=r"^20[0-9]{2}-(0[1-9]|1[0-2])$(?!\n)", description="Such as `2026-11`, UTC.")
]
Micros = Annotated[int, Meta(ge=1, le=10**15)]
Text = Annotated[str, Meta(max_length=500, pattern=r"^[^\u0000]*$(?!\n)")]
CurrencyCode = Annotated[str, Meta(pattern=r"^[A-Z]{3}$(?!\n)")]
ByWord = Literal["instance", "gpu", "user", "label"]
BOOK_CHARACTERS_MAX = 1 << 20


class _Request(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    pass


class _Answer(msgspec.Struct, frozen=True, kw_only=True):
    pass


# -- prices ------------------------------------------------------------------------------------------------------------


class BookRequest(_Request, frozen=True, kw_only=True):
    text: Annotated[str, Meta(min_length=1, max_length=BOOK_CHARACTERS_MAX)]
    """YAML; see docs/bill.md."""
    name: Annotated[str, Meta(min_length=1, max_length=255, pattern=r"^[^\u0000-\u001f]+$(?!\n)")] = (
        "prices.yaml"
    )
    """What errors call it."""


class UnitAnswer(_Answer, frozen=True, kw_only=True):
    what: str
    """A card's id, or vcpu, ram, disk, snapshot, address, egress."""
    place: str
    """Empty: everywhere; else `region NAME` or `host NAME`."""
    on_demand_micros_per_hour: int
    on_demand_micros_per_month: int
    """730 hours. What leaves the house costs this much a GB, whenever it does."""
    monthly_micros: int | None
    """Of a month that is bought ahead; null: the discount counts."""
    spot_micros_per_hour: int | None


class PricesAnswer(_Answer, frozen=True, kw_only=True):
    version: int
    currency: str
    starts_at: datetime
    ends_at: datetime | None
    minimum_seconds: int
    monthly_percent_off: float
    spot_percent_off: float
    reserved_percent_off: Mapping[str, float]
    """By years."""
    upfront_percent_off: float
    long_term_percent_off: Mapping[str, float]
    """By days of a run."""
    refund_percent: float
    tax_name: str
    tax_percent: float
    items: tuple[UnitAnswer, ...]


class PeriodsAnswer(_Answer, frozen=True, kw_only=True):
    """The periods of a book that was taken."""

    items: tuple[PricesAnswer, ...]


class QuoteRequest(_Request, frozen=True, kw_only=True):
    shape: ShapeRequest = ShapeRequest()
    mode: ModeWord = "on-demand"
    instances: Annotated[int, Meta(ge=1, le=100)] = 1
    until: Annotated[datetime, Meta(tz=True)] | None = None
    """A deadline: what it costs up to then is told too. With a zone."""
    host: str = ""
    """On this host only: its prices and those of its region count."""
    site: Ref = ""
    type: Ref = ""
    """A machine type to rent at `site`, instead of a shape."""
    region: Ref = ""


class QuoteAnswer(_Answer, frozen=True, kw_only=True):
    currency: str
    instances: int
    mode: str
    gpu: str
    gpus: int
    vcpus: int
    ram_bytes: int
    disk_bytes: int
    """Of each instance; the amounts are of all of them."""
    micros_per_hour: int
    micros_per_month: int
    micros_stopped_per_month: int
    egress_micros_per_gb: int
    """Each GB of 2**30 bytes that leaves the house."""
    snapshot_micros_per_gb: int
    """Each GB that snapshots keep, a month."""
    region: str
    """Where prices depend on the place: the region of the dearest it may come to, which this is the price of."""
    micros_until: int | None
    minimum_micros: int
    monthly_micros: int
    reserved_micros: Mapping[str, int]
    """A month of it, where so many years are reserved."""
    version: int
    is_priced: bool


# -- bills -------------------------------------------------------------------------------------------------------------


class GroupAnswer(_Answer, frozen=True, kw_only=True):
    name: str
    lines: int
    micros: int


class BillAnswer(_Answer, frozen=True, kw_only=True):
    project_id: str
    month: str
    currency: str
    micros: int
    """Booked so far."""
    unbooked_micros: int
    """Held since; booked when it is given back, or the day is over."""
    list_micros: int
    """What the booked would have cost on demand, without any discount."""
    lines: int
    by: ByWord
    groups: tuple[GroupAnswer, ...]


class LineAnswer(_Answer, frozen=True, kw_only=True):
    number: int
    kind: Annotated[str, closed("usage", "fee", "refund", "reversal")]
    subject: str
    """The instance, or the purchase."""
    name: str
    starts_at: datetime
    ends_at: datetime
    gpu: str
    gpus: int
    vcpus: int
    ram_bytes: int
    disk_bytes: int
    egress_bytes: int
    mode: str
    purchase_id: str
    discount_percent: float
    version: int
    member: str
    labels: Mapping[str, str]
    currency: str
    micros: int
    parts: Mapping[str, int]
    """What of it is for what; only what costs something."""
    list_micros: int


class LinePage(_Answer, frozen=True, kw_only=True):
    items: tuple[LineAnswer, ...]
    next: str | None


class CostAnswer(_Answer, frozen=True, kw_only=True):
    instance_id: str
    name: str
    currency: str
    micros_per_hour: int
    micros: int
    """So far, all months."""
    is_priced: bool
    paid_until: datetime | None = None
    """Up to when it is bought ahead; null: it is not."""
    idle_gpus: int = 0
    """Cards it has that do nothing, where the host can tell."""
    idle_since: datetime | None = None


class CostPage(_Answer, frozen=True, kw_only=True):
    items: tuple[CostAnswer, ...]
    next: str | None


class FaultAnswer(_Answer, frozen=True, kw_only=True):
    where: str
    what: str


class VerdictAnswer(_Answer, frozen=True, kw_only=True):
    sound: bool
    instances: int
    charges: int
    entries: int
    changes_to_come: int
    faults: tuple[FaultAnswer, ...]
    faults_beyond: int


# -- budgets, credits, how a project pays ------------------------------------------------------------------------------


class BudgetRequest(_Request, frozen=True, kw_only=True):
    micros: Annotated[int, Meta(ge=0, le=10**15)]
    """For a calendar month, UTC, in the currency the project pays in."""
    levels: Annotated[tuple[Annotated[int, Meta(ge=1, le=1000)], ...], Meta(max_length=20)] = (50, 80, 100)
    hard_stop: bool = False
    notice_seconds: Annotated[int, Meta(ge=0, le=604_800)] = 3600


class BudgetAnswer(_Answer, frozen=True, kw_only=True):
    currency: str
    micros: int
    """What rules: the lower one of the project's own budget and the operator's cap."""
    own_micros: int | None = None
    """The project's own budget; null: there is only a cap."""
    cap_micros: int | None = None
    """The operator's cap, which the project cannot change; null: there is none."""
    levels: tuple[int, ...]
    hard_stop: bool
    notice_seconds: int
    month: str
    spent_micros: int
    micros_per_hour: int
    is_spent: bool
    """Nothing new can be launched."""
    levels_reached: tuple[int, ...] = ()
    """Those that were told this month, by an event `budget.reached` each."""
    stops_at: datetime | None = None
    """When all is stopped, if what is held stays as it is; null without a hard stop, or where the month ends before."""
    announced_at: datetime | None = None
    """When that was announced, by an event `budget.ending`."""
    stopped_at: datetime | None = None


class CapRequest(_Request, frozen=True, kw_only=True):
    """The operator's cap on a project's month."""

    micros: Annotated[int, Meta(ge=0, le=10**15)]
    notice_seconds: Annotated[int, Meta(ge=0, le=604_800)] = 3600


class CreditRequest(_Request, frozen=True, kw_only=True):
    micros: Micros
    reason: Annotated[str, Meta(min_length=1, max_length=200, pattern=r"^[^\u0000-\u001f]+$(?!\n)")]
    expires_at: Annotated[datetime, Meta(tz=True)] | None = None


class CreditAnswer(_Answer, frozen=True, kw_only=True):
    id: str
    reason: str
    currency: str
    micros: int
    left_micros: int
    starts_at: datetime
    expires_at: datetime | None
    is_expired: bool


class CreditList(_Answer, frozen=True, kw_only=True):
    items: tuple[CreditAnswer, ...]


class ProfileShape(_Request, frozen=True, kw_only=True):
    """How a project pays."""

    currency: CurrencyCode
    pays: Literal["invoice", "prepaid"] = "invoice"
    tax_name: Annotated[str, Meta(max_length=40, pattern=r"^[^\u0000-\u001f]*$(?!\n)")] = ""
    """Empty: as the price book says."""
    tax_basis_points: Annotated[int, Meta(ge=0, le=10_000)] = 0
    customer: Text = ""
    """Lines of an address, for invoices."""
    tax_number: Annotated[str, Meta(max_length=60, pattern=r"^[^\u0000-\u001f]*$(?!\n)")] = ""
    """The customer's tax number, for invoices."""


class ProfileAnswer(_Answer, frozen=True, kw_only=True):
    currency: str
    pays: str
    tax_name: str
    tax_basis_points: int
    customer: str
    tax_number: str = ""
    balance_micros: int
    """Paid in advance, less what was booked."""
    owed_micros: int
    pending_micros: int = 0
    """Used, and not booked yet: it is booked when it is given back, or the day is over."""
    available_micros: int = 0
    """Of a project that pays in advance: balance and credits, less what is owed and what is not booked."""


class PaymentRequest(_Request, frozen=True, kw_only=True):
    micros: Micros
    month: Month | None = None
    """Of the invoice that is paid; null: paid in advance."""


# -- purchases and invoices --------------------------------------------------------------------------------------------


class PurchaseRequest(_Request, frozen=True, kw_only=True):
    instance: Annotated[str, Meta(min_length=1, max_length=100, pattern=r"^[^\u0000-\u001f]+$(?!\n)")]
    years: Annotated[int, Meta(ge=0, le=3)] = 0
    """0: by the month; 1 to 3: reserved."""
    upfront: bool = False
    renews: bool = True


class PreviewAnswer(_Answer, frozen=True, kw_only=True):
    """What a purchase would cost now."""

    currency: str
    fee_micros: int
    """Charged at once."""
    month_micros: int
    committed_micros: int
    """With all instalments to come: what counts against a purchase limit."""
    starts_at: datetime
    paid_until: datetime


class LimitRequest(_Request, frozen=True, kw_only=True):
    micros: Annotated[int, Meta(ge=0, le=10**15)]
    """What the member may commit to by purchases in a calendar month, UTC."""


class LimitAnswer(_Answer, frozen=True, kw_only=True):
    member_id: str
    member: str
    currency: str
    micros: int
    month: str
    spent_micros: int


class LimitList(_Answer, frozen=True, kw_only=True):
    items: tuple[LimitAnswer, ...]


class RenewalChange(_Request, frozen=True, kw_only=True):
    renews: bool


class TermAnswer(_Answer, frozen=True, kw_only=True):
    kind: Annotated[str, closed("bought", "renewed", "continued", "upgraded", "ended")]
    starts_at: datetime
    ends_at: datetime
    fee_micros: int
    month_micros: int


class PurchaseAnswer(_Answer, frozen=True, kw_only=True):
    id: str
    instance_id: str
    instance: str = ""
    """The instance's name."""
    mode: str
    years: int
    upfront: bool
    renews: bool
    ended: bool
    currency: str
    paid_until: datetime
    terms: tuple[TermAnswer, ...]


class PurchaseList(_Answer, frozen=True, kw_only=True):
    items: tuple[PurchaseAnswer, ...]


class InvoiceRequest(_Request, frozen=True, kw_only=True):
    month: Month


class InvoiceAnswer(_Answer, frozen=True, kw_only=True):
    number: str
    month: str
    currency: str
    usage_micros: int
    credit_micros: int
    tax_micros: int
    paid_micros: int
    due_micros: int
    """What it says is to be paid; below zero: what the project gets back."""
    open_micros: int
    """What of that is not paid yet."""
    issued_at: datetime


class InvoiceList(_Answer, frozen=True, kw_only=True):
    items: tuple[InvoiceAnswer, ...]
