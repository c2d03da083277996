"""What stands on an invoice."""

from collections.abc import Iterable, Mapping, Sequence

from teraflock.base.money import divided
from teraflock.base.quantities import GIB, memory_text
from teraflock.bill.charge.model import Charge
from teraflock.bill.charge.rules import SECOND_US
from teraflock.bill.charge.store import Booked
from teraflock.bill.credit.rules import Due
from teraflock.bill.invoice.model import Invoice, Line
from teraflock.bill.ledger.model import Entry
from teraflock.bill.price.model import BASIS
from teraflock.bill.times import month_bounds


def tax_micros(net_micros: int, tax_bp: int) -> int:
    """On what is left after credits; nothing where that is nothing."""
    return divided(max(0, net_micros) * tax_bp, BASIS)


def number_text(invoice: Invoice) -> str:
    return f"{invoice.month}-{invoice.number:05}"


def paid_by(entries: Iterable[Entry]) -> tuple[int, int]:
    """What credits paid, and what the balance did."""
    credit = balance = 0
    for entry in entries:
        micros = -entry.micros if entry.kind == "returned" else entry.micros
        if entry.subject.startswith("balance/"):
            balance += micros
        else:
            credit += micros
    return credit, balance


def months_due(unpaid: Mapping[str, int], owed: int) -> list[Due]:
    """What is owed for which month, the oldest first, and not more than is owed in all."""
    dues = []
    for month, micros in sorted(unpaid.items()):
        part = min(micros, owed)
        if part > 0:
            dues.append(Due(month_bounds(month)[0], month, part))
            owed -= part
    return dues


def lines(booked: Sequence[Booked], invoiced_until: str) -> tuple[Line, ...]:
    """A line for each instance in each shape it had, fees apart, the dearest first; then what is late, by month.

    `invoiced_until` is the last month that was invoiced before; what is of that or an earlier one is late.
    """
    sums: dict[tuple[str, str, str, str], list[int]] = {}
    for line in booked:
        charge = line.charge
        what, details = _words(charge)
        late = line.month if line.month <= invoiced_until else ""
        total = sums.setdefault((late, what, details, _kind(charge)), [0, 0, 0])
        sign = -1 if charge.kind == "reversal" else 1
        total[0] += charge.micros
        total[1] += sign * (charge.slice.until_us - charge.slice.from_us)
        total[2] += charge.slice.egress_bytes
    made = [
        Line(what=what, details=details, quantity=_quantity(kind, us, sent), micros=micros, month=month)
        for (month, what, details, kind), (micros, us, sent) in sums.items()
        if micros or us
    ]
    return tuple(sorted(made, key=lambda line: (line.month, -line.micros, line.what, line.details)))


def _kind(charge: Charge) -> str:
    """What a line counts: hours, a fee, what was given back, or what was sent."""
    if charge.kind in ("fee", "refund"):
        return charge.kind
    return "traffic" if _is_traffic(charge) else ""


def _is_traffic(charge: Charge) -> bool:
    """Lines of a day's traffic have a number below zero: see `charge.traffic`."""
    return charge.subject.sequence < 0


def _words(charge: Charge) -> tuple[str, str]:
    held = charge.subject.held
    parts = [
        f"{held.gpus} × {held.gpu}" if held.gpus else "",
        f"{held.vcpus} vCPU" if held.vcpus else "",
        f"{memory_text(held.ram_bytes)} RAM" if held.ram_bytes else "",
        f"{memory_text(held.disk_bytes)} disk" if held.disk_bytes else "",
        f"{memory_text(held.snapshots_bytes)} snapshots" if held.snapshots_bytes else "",
        "public address" if held.addresses else "",
    ]
    shape = ", ".join(part for part in parts if part)
    if charge.kind == "fee":
        return f"{held.name or charge.subject.id}: {held.mode}", shape
    if charge.kind == "refund":
        return f"{held.name or charge.subject.id}: ended early", "what was left, given back"
    name = held.name or charge.subject.id
    if _is_traffic(charge):
        return name, "traffic out of the house"
    stopped = "" if held.vcpus or held.gpus else "stopped: "
    paid = ", beyond what is bought" if charge.slice.purchase_id else ""
    return name, f"{stopped}{shape}{', spot' if held.mode == 'spot' else ''}{paid}"


def _quantity(kind: str, us: int, sent_bytes: int) -> str:
    said = {"fee": "1 term", "refund": "", "traffic": f"{sent_bytes / GIB:,.3f} GB"}
    return said.get(kind, f"{us / SECOND_US / 3600:,.3f} h")
