"""What stands on an invoice."""

from collections.abc import Iterable

from teraflock.base.money import divided
from teraflock.base.quantities import memory_text
from teraflock.bill.charge.model import Charge
from teraflock.bill.charge.rules import SECOND_US
from teraflock.bill.invoice.model import Line
from teraflock.bill.price.model import BASIS


def tax_micros(net_micros: int, tax_bp: int) -> int:
    """On what is left after credits; nothing where that is nothing."""
    return divided(max(0, net_micros) * tax_bp, BASIS)


def lines(charges: Iterable[Charge]) -> tuple[Line, ...]:
    """A line for each instance in each shape it had, fees and corrections apart, the dearest first."""
    sums: dict[tuple[str, str, str], list[int]] = {}
    for charge in charges:
        what, details = _words(charge)
        key = (what, details, "" if charge.kind in ("usage", "reversal") else charge.kind)
        total = sums.setdefault(key, [0, 0])
        sign = -1 if charge.kind == "reversal" else 1
        total[0] += charge.micros
        total[1] += sign * (charge.slice.until_us - charge.slice.from_us)
    made = [
        Line(what=what, details=details, quantity="1 month" if kind else _hours(us), micros=micros)
        for (what, details, kind), (micros, us) in sums.items()
        if micros or us
    ]
    return tuple(sorted(made, key=lambda line: (-line.micros, line.what, line.details)))


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
    stopped = "" if held.vcpus or held.gpus else "stopped: "
    paid = ", beyond what is bought" if charge.slice.purchase_id else ""
    return name, f"{stopped}{shape}{', spot' if held.mode == 'spot' else ''}{paid}"


def _hours(us: int) -> str:
    return f"{us / SECOND_US / 3600:,.3f} h"
