"""Computes the contents of an invoice."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from teraflock.base.clock import SECOND_US
from teraflock.base.money import decimal_text, divided
from teraflock.base.quantities import GIB, memory_text
from teraflock.bill.charge.model import Charge
from teraflock.bill.charge.store import Booked
from teraflock.bill.credit.rules import Due
from teraflock.bill.invoice.model import Invoice, InvoiceLine
from teraflock.bill.ledger.model import LedgerEntry
from teraflock.bill.price.model import ADDRESS, BASIS, IMAGE
from teraflock.bill.times import moment, month_bounds


def tax_micros(net_micros: int, tax_bp: int) -> int:
    """Tax on the amount after credits; 0 if nothing is left."""
    return divided(max(0, net_micros) * tax_bp, BASIS)


def number_text(invoice: Invoice) -> str:
    """A preview has no number."""
    return f"{invoice.month}-{invoice.number:05}" if invoice.number else f"{invoice.month} PREVIEW"


def paid_by(entries: Iterable[LedgerEntry]) -> tuple[int, int]:
    """The amounts that credits and the balance paid."""
    credit = balance = 0
    for entry in entries:
        micros = -entry.micros if entry.kind == "returned" else entry.micros
        if entry.subject.startswith("balance/"):
            balance += micros
        else:
            credit += micros
    return credit, balance


def months_due(unpaid: Mapping[str, int], owed: int) -> list[Due]:
    """The amount owed for each month, oldest first, up to the total that is owed."""
    dues = []
    for month, micros in sorted(unpaid.items()):
        part = min(micros, owed)
        if part > 0:
            dues.append(Due(month_bounds(month)[0], month, part))
            owed -= part
    return dues


class _Total(msgspec.Struct):
    """The total of one line."""

    micros: int = 0
    minimum_micros: int = 0
    """The part that short runs pay up to the minimum. It is not part of the hourly price."""
    us: int = 0
    sent_bytes: int = 0

    def add(self, charge: Charge) -> None:
        sign = -1 if charge.kind == "reversal" else 1
        self.micros += charge.micros
        self.minimum_micros += charge.slice.amounts.minimum
        self.us += sign * (charge.slice.until_us - charge.slice.from_us)
        self.sent_bytes += charge.slice.egress_bytes


def lines(booked: Sequence[Booked], invoiced_until: str, currency: str = "") -> tuple[InvoiceLine, ...]:
    """One line per instance and per fee, the most expensive first, then late charges by month.

    `invoiced_until` is the last month that was invoiced before. Charges of that month or an earlier one are late. Lines
    that cost nothing are omitted.
    """
    parts = _summed(booked, invoiced_until)
    by_name: dict[tuple[str, str, str], list[tuple[str, str, _Total]]] = {}
    for (late, what, details, kind), total in parts.items():
        if total.micros:
            is_fee = kind in ("fee", "refund")
            key = (late, what, f"{details}/{kind}" if is_fee else "")
            by_name.setdefault(key, []).append((details, kind, total))
    made = [_line(what, late, own, currency) for (late, what, _), own in by_name.items()]
    return _in_order(line for line in made if line.micros)


def annex(booked: Sequence[Booked], invoiced_until: str, currency: str) -> tuple[InvoiceLine, ...]:
    """For instances with several parts: the cost of each shape, and of traffic."""
    parts = {
        key: total
        for key, total in _summed(booked, invoiced_until).items()
        if total.micros and key[3] not in ("fee", "refund")
    }
    counts = Counter((late, what) for late, what, _, _ in parts)
    made = [
        _part_line(what, details, kind, late, total, currency)
        for (late, what, details, kind), total in parts.items()
        if counts[late, what] > 1
    ]
    return tuple(sorted(made, key=lambda line: (line.month, line.what, -line.micros, line.details)))


def _summed(booked: Sequence[Booked], invoiced_until: str) -> dict[tuple[str, str, str, str], _Total]:
    sums: dict[tuple[str, str, str, str], _Total] = {}
    for line in booked:
        what, details = _words(line.charge)
        late = line.month if line.month <= invoiced_until else ""
        sums.setdefault((late, what, details, _kind(line.charge)), _Total()).add(line.charge)
    return sums


def _line(what: str, late: str, own: Sequence[tuple[str, str, _Total]], currency: str) -> InvoiceLine:
    """A line with one part has its details. A line with several has their total time and cost."""
    if len(own) == 1:
        (details, kind, total), *_ = own
        return _part_line(what, details, kind, late, total, currency)
    held = sum(total.us for _, kind, total in own if kind != "traffic")
    shapes = [shape for shape, kind, _ in own if kind != "traffic"]
    parts = [f"{len(shapes)} shapes" if len(shapes) > 1 else shape for shape in shapes[:1]]
    parts += ["traffic"] if len(shapes) < len(own) else []
    micros = sum(total.micros for _, _, total in own)
    return InvoiceLine(
        what=what, details=f"{' and '.join(parts)}, see the annex", quantity=_quantity("", held, 0), micros=micros,
        month=late,
    )  # fmt: skip


def _part_line(what: str, details: str, kind: str, late: str, total: _Total, currency: str) -> InvoiceLine:
    return InvoiceLine(
        what=what, details=details, quantity=_quantity(kind, total.us, total.sent_bytes), micros=total.micros,
        month=late, unit_price=_unit_price(kind, total, currency),
    )  # fmt: skip


def _unit_price(kind: str, total: _Total, currency: str) -> str:
    """The effective price with all discounts, to four decimals, because a vCPU hour is cheap."""
    if kind == "fee":
        return f"{decimal_text(total.micros, 2)} {currency}/term"
    if kind == "refund":
        return ""
    if kind == "traffic":
        return (
            f"{decimal_text(total.micros * GIB // total.sent_bytes, 4)} {currency}/GB"
            if total.sent_bytes
            else ""
        )
    if not total.us:
        return ""
    return f"{decimal_text((total.micros - total.minimum_micros) * 3600 * SECOND_US // total.us, 4)} {currency}/h"


def _in_order(made: Iterable[InvoiceLine]) -> tuple[InvoiceLine, ...]:
    return tuple(sorted(made, key=lambda line: (line.month, -line.micros, line.what, line.details)))


def _kind(charge: Charge) -> str:
    """The kind of a line: usage by the hour (empty), a fee, a refund, or traffic."""
    if charge.kind in ("fee", "refund"):
        return charge.kind
    return "traffic" if _is_traffic(charge) else ""


def _is_traffic(charge: Charge) -> bool:
    """Charges for a day's traffic have a negative sequence: see `charge.traffic`."""
    return charge.subject.sequence < 0


def _words(charge: Charge) -> tuple[str, str]:
    held = charge.subject.held
    parts = [
        f"{held.size.gpus} × {held.size.gpu}" if held.size.gpus else "",
        f"{held.size.vcpus} vCPU" if held.size.vcpus else "",
        f"{memory_text(held.size.ram_bytes)} RAM" if held.size.ram_bytes else "",
        f"{memory_text(held.size.disk_bytes)} disk" if held.size.disk_bytes else "",
        f"{memory_text(held.snapshots_bytes)} snapshots" if held.snapshots_bytes else "",
    ]
    shape = ", ".join(part for part in parts if part)
    if charge.kind == "fee":
        until = f"paid until {moment(charge.slice.until_us):%Y-%m-%d}"
        return f"{held.name or charge.subject.id}: {held.mode}, {until}", shape
    if charge.kind == "refund":
        return f"{held.name or charge.subject.id}: ended early", "refund for the remaining time"
    name = held.name or charge.subject.id
    if _is_traffic(charge):
        return name, "outgoing traffic"
    if held.mode == ADDRESS:
        return name, "public address"
    if held.mode == IMAGE:
        return name, f"{memory_text(held.snapshots_bytes)} kept"
    stopped = "" if held.size.vcpus or held.size.gpus else "stopped: "
    paid = ", beyond the prepaid size" if charge.slice.purchase_id else ""
    return name, f"{stopped}{shape}{f', {held.mode}' if held.mode in ('spot', 'bid') else ''}{paid}"


def _quantity(kind: str, us: int, sent_bytes: int) -> str:
    texts = {"fee": "1 term", "refund": "", "traffic": f"{sent_bytes / GIB:,.3f} GB"}
    return texts.get(kind, f"{us / SECOND_US / 3600:,.3f} h")
