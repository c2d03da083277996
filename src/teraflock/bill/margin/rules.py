"""Turns changes of instances into uses of hosts, and rates, sizes and uses into the cost of a day. Pure.

Invariants:
- the lines of a day add up to the cost of the host on that day, to the micro-unit: the rest is idle;
- the cost of a time does not depend on how it is cut, because it is rounded down from the start of its rate;
- an own host with cards is divided by cards. One without cards is divided by the mean of the shares of vCPUs and RAM.
  If instances hold more than the host has, the shares are scaled down to add up to one;
- a rented host is for its one instance, from its creation until the provider confirms that it is gone.
"""

from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import pairwise

from msgspec.structs import replace

from teraflock.base.clock import DAY_US, at_microseconds
from teraflock.bill.margin.model import CARD_PARTS, CostLine, CostRate, HostPart, HostSize, HostUse, OpenUse
from teraflock.bill.price.model import share_ppm
from teraflock.instance.states import ENDED, Phase
from teraflock.meter.model import Change

HOUR_US = 3_600 * 10**6
USES_NOTHING = ENDED | {Phase.STOPPED}
"""In these phases an instance uses nothing of its host."""


def gpu_parts(gpu: str, count: int) -> int:
    """The number of cards or slices, in millionths of a card."""
    card, _, profile = gpu.partition(":")
    return count * ((share_ppm(card, profile) if profile else None) or CARD_PARTS)


def take(use: OpenUse, change: Change) -> tuple[OpenUse, HostUse | None]:
    """Apply the next change of an instance. Return where it is from then on, and the use that ended, if any."""
    at_us = max(use.at_us, change.at_us)
    host_id, held = _held(change)
    read = replace(use, sequence=change.sequence, at_us=at_us)
    if (host_id, held) == (use.host_id, use.held):
        return read, None
    after = replace(
        read,
        began_sequence=change.sequence,
        host_id=host_id,
        project_id=change.project_id,
        from_us=at_us,
        held=held,
    )
    return after, until(use, at_us) if use.host_id and use.from_us < at_us else None


def until(use: OpenUse, at_us: int) -> HostUse:
    """What is held now, as a use that ends at a time."""
    return HostUse(
        instance_id=use.instance_id,
        sequence=use.began_sequence,
        host_id=use.host_id,
        project_id=use.project_id,
        from_us=use.from_us,
        until_us=at_us,
        held=use.held,
    )


def _held(change: Change) -> tuple[str, HostPart]:
    size = change.held.size
    held = HostPart(gpu_parts=gpu_parts(size.gpu, size.gpus), vcpus=size.vcpus, ram_bytes=size.ram_bytes)
    if change.phase in USES_NOTHING or held == HostPart():
        return "", HostPart()
    return change.held.host, held


def cost_of_day(
    day: int,
    until_us: int,
    rates: Sequence[CostRate],
    sizes: Sequence[HostSize],
    uses: Iterable[HostUse],
) -> list[CostLine]:
    """The lines of one day of a host, up to a time within it. `rates` in the order of recording, `sizes` by time."""
    begin_us = day * DAY_US
    end_us = min(begin_us + DAY_US, until_us)
    used = list(uses)
    lines: list[CostLine] = []
    for rate, from_us, to_us in _stretches(rates, begin_us, end_us):
        micros = _accrued(rate, to_us) - _accrued(rate, from_us)
        line = CostLine(
            kind="idle", host_id=rate.host_id, day=day, month=f"{at_microseconds(from_us):%Y-%m}",
            from_us=from_us, until_us=to_us, currency=rate.currency, micros=micros,
        )  # fmt: skip
        if rate.instance_id:
            served = replace(line, kind="rental", instance_id=rate.instance_id, project_id=rate.project_id)
            lines.append(served)
        else:
            lines += _divided(line, rate, sizes, used)
    return [line for line in lines if line.micros]


def rate_at(rates: Sequence[CostRate], us: int) -> CostRate | None:
    """The value at a time."""
    begun = [rate for rate in rates if rate.from_us <= us]
    return begun[-1] if begun else None


def ends_at(rates: Sequence[CostRate]) -> int | None:
    """The time from which a host costs nothing. None: it still costs something."""
    return None if rates[-1].micros_per_hour else rates[-1].from_us


def cost_between(rates: Sequence[CostRate], begin_us: int, end_us: int) -> int:
    """What a rented host cost between two times."""
    stretches = _stretches(rates, begin_us, end_us)
    return sum(_accrued(rate, to_us) - _accrued(rate, from_us) for rate, from_us, to_us in stretches)


def _stretches(rates: Sequence[CostRate], begin_us: int, end_us: int) -> Iterable[tuple[CostRate, int, int]]:
    """The time during which each rate applies. A rate that was replaced before its time has no effect."""
    edges = sorted({begin_us, *(rate.from_us for rate in rates if begin_us < rate.from_us < end_us)})
    counting = [(us, rate_at(rates, us)) for us in edges if us < end_us]
    changes = [each for n, each in enumerate(counting) if n == 0 or each[1] is not counting[n - 1][1]]
    for (from_us, rate), (to_us, _) in pairwise([*changes, (end_us, None)]):
        if rate is not None and rate.micros_per_hour:
            yield rate, from_us, to_us


def _accrued(rate: CostRate, us: int) -> int:
    return (rate.micros_per_hour or 0) * (us - rate.from_us) // HOUR_US


def _divided(
    whole: CostLine, rate: CostRate, sizes: Sequence[HostSize], uses: Sequence[HostUse]
) -> list[CostLine]:
    """A line for each time during which an instance had the same share, and the idle rest."""
    lines: list[CostLine] = []
    share_of: dict[int, Fraction] = {}  # of the line with this index
    last_of: dict[str, int] = {}  # the index of an instance's last line
    for from_us, to_us in pairwise(_edges(whole, sizes, uses)):
        now = [use for use in uses if use.from_us <= from_us < use.until_us]
        for use, share in zip(now, shares(_size_at(sizes, from_us), [u.held for u in now]), strict=True):
            last = last_of.get(use.instance_id)
            if last is not None and lines[last].until_us == from_us and share_of[last] == share:
                lines[last] = replace(lines[last], until_us=to_us)
            else:
                last_of[use.instance_id] = len(lines)
                share_of[len(lines)] = share
                ids = {"instance_id": use.instance_id, "project_id": use.project_id}
                lines.append(replace(whole, kind="use", from_us=from_us, until_us=to_us, **ids))
    lines = [
        replace(line, micros=int(share_of[n] * (rate.micros_per_hour or 0) * _us(line) // HOUR_US))
        for n, line in enumerate(lines)
    ]
    return [*lines, replace(whole, micros=whole.micros - sum(line.micros for line in lines))]


def _us(line: CostLine) -> int:
    return line.until_us - line.from_us


def _edges(whole: CostLine, sizes: Sequence[HostSize], uses: Sequence[HostUse]) -> list[int]:
    edges = {us for use in uses for us in (use.from_us, use.until_us)} | {size.from_us for size in sizes}
    inside = {us for us in edges if whole.from_us < us < whole.until_us}
    return sorted(inside | {whole.from_us, whole.until_us})


def _size_at(sizes: Sequence[HostSize], us: int) -> HostPart:
    begun = [size for size in sizes if size.from_us <= us] or sizes[:1]
    return begun[-1].whole if begun else HostPart()


def shares(whole: HostPart, held: Sequence[HostPart]) -> list[Fraction]:
    """The share of a host that each instance has. They add up to at most one."""
    if whole.gpu_parts:
        found = [Fraction(each.gpu_parts, whole.gpu_parts) for each in held]
    else:
        found = [
            (_share(each.vcpus, whole.vcpus) + _share(each.ram_bytes, whole.ram_bytes)) / 2 for each in held
        ]
    beyond = max(Fraction(1), sum(found, Fraction(0)))
    return [share / beyond for share in found]


def _share(part: int, whole: int) -> Fraction:
    return Fraction(part, whole) if whole else Fraction(0)
