"""Computes what hosts must cost, from the events.

It implements the rules in the head of bill/margin/rules.py a second time: rates and uses are verified from events, and
the lines of each day from rates, sizes and uses. Sizes are evidence, like readings: they have no events.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import groupby, pairwise
from typing import Any, NamedTuple

from teraflock.base.clock import DAY_US
from teraflock.bill.price.model import FOREVER_US, share_ppm
from teraflock.bill.verify.check import Fault, month_of
from teraflock.bill.verify.row import Named, Said
from teraflock.bill.verify.timeline import told

HOUR_US = 60 * 60 * 10**6
HOLDS_NOTHING = ("stopped", "failed", "gone")
NOTHING = ("", "", 0, 0, 0)
RATE = ("host_id", "instance_id", "project_id", "from_us", "micros_per_hour", "currency", "recorded_at_us")
LINE = ("kind", "instance_id", "project_id", "month", "from_us", "until_us", "currency", "micros")
TAKEN_BACK = ("host_id", "day", "instance_id", "project_id", "month", "from_us", "until_us", "currency")


class HeldPart(NamedTuple):
    """What an instance holds of a host from a change on."""

    sequence: int
    from_us: int
    what: tuple[Any, ...]
    """Host, project, cards, vCPUs, RAM."""


# -- rates -------------------------------------------------------------------------------------------------------------


def rate_of(said: Said, project_id: str) -> tuple[Any, ...]:
    """The row that an event about a cost requires. `project_id` is that of the rented instance."""
    host_id, instance_id = said.get("host", said["subject"]), said["subject"] if "host" in said else ""
    from_us = said.get("from_us", said["at_us"])
    cost = (said["cost_micros_per_hour"], said["cost_currency"])
    return (host_id, instance_id, project_id, from_us, *cost, said["at_us"])


def check_rates(rows: Iterable[Named], expected: Counter[tuple[Any, ...]]) -> Iterator[Fault]:
    missing = Counter(expected)
    for row in rows:
        rate = tuple(row[name] for name in RATE)
        if not missing[rate]:
            yield Fault(where=f"host_cost {row['number']}", what="no event explains it")
        missing[rate] -= 1
    for rate in (+missing).elements():
        yield Fault(where=f"host_cost of {rate[0]}", what=f"the cost from {rate[3]} is missing")


# -- uses --------------------------------------------------------------------------------------------------------------


def check_uses(
    instance_id: str, events: Sequence[Said], uses: Sequence[Named], opened: Sequence[Named]
) -> Iterator[Fault]:
    """`opened` is the one row that says how far the events were read."""
    read = opened[0]["sequence"] if opened else 0
    changes = told(events)
    if read > len(changes):
        what = f"read {read} changes, {len(changes)} exist"
        yield Fault(where=f"host_use_open {instance_id}", what=what)
    held = _held(changes[:read])
    expected = {
        before.sequence: (before.from_us, after.from_us, before.what)
        for before, after in pairwise(held)
        if before.what[0] and before.from_us < after.from_us
    }
    for row in uses:
        found = (row["from_us"], row["until_us"], _what(row))
        if expected.pop(row["sequence"], None) != found:
            yield Fault(where=f"host_use {instance_id} {row['sequence']}", what="differs from the events")
    for sequence in expected:
        yield Fault(where=f"host_use {instance_id} {sequence}", what="is missing")
    if opened and read <= len(changes):
        at_us = max((said["at_us"] for said in changes[:read]), default=0)
        row, last = opened[0], held[-1]
        if (row["began_sequence"], row["from_us"], _what(row), row["at_us"]) != (*last, at_us):
            yield Fault(where=f"host_use_open {instance_id}", what="differs from the events")


def _held(changes: Sequence[Said]) -> list[HeldPart]:
    found = [HeldPart(0, 0, NOTHING)]
    clock_us = 0
    for said in changes:
        clock_us = max(clock_us, said["at_us"])
        what = _said(said)
        before = found[-1].what
        if what != (before[0], *before[2:]):
            project = said["project_id"]
            found.append(HeldPart(said["sequence"], clock_us, (what[0], project, *what[1:])))
    return found


def _said(said: Said) -> tuple[Any, ...]:
    gpu, count = said.get("gpu", ""), said.get("gpus", 0)
    card, _, profile = gpu.partition(":")
    parts = count * ((share_ppm(card, profile) if profile else None) or 10**6)
    size = (parts, said.get("vcpus", 0), said.get("ram_bytes", 0))
    if said["to"] in HOLDS_NOTHING or not any(size):
        return ("", 0, 0, 0)
    return (said.get("host", ""), *size)


def _what(row: Named) -> tuple[Any, ...]:
    return tuple(row[name] for name in ("host_id", "project_id", "gpu_parts", "vcpus", "ram_bytes"))


# -- lines -------------------------------------------------------------------------------------------------------------


def check_host(host_id: str, rows: Mapping[str, list[Named]]) -> Iterator[Fault]:
    """`rows` about a host: `rate`, `size`, `use` (also those that have not ended), `line` and `booked`."""
    if not (rows["rate"] or rows["line"] or rows["booked"]):
        return
    if not (rows["rate"] and rows["booked"]):
        yield Fault(
            where=f"cost_host {host_id}",
            what="a host must have one row here if it has a cost, and none otherwise",
        )
        return
    booked_us, rates, lines = rows["booked"][0]["booked_until_us"], rows["rate"], rows["line"]
    if booked_us != FOREVER_US and booked_us % DAY_US:
        yield Fault(where=f"cost_host {host_id}", what="is booked up to a time that is not the end of a day")
        return
    yield from _check_reversals(lines)
    taken_back = {row["reverses"] for row in lines}
    by_day: dict[int, Counter[tuple[Any, ...]]] = defaultdict(Counter)
    for row in lines:
        if row["kind"] != "reversal" and row["number"] not in taken_back:
            by_day[row["day"]][tuple(row[name] for name in LINE)] += 1
    first_us = min(rate["from_us"] for rate in rates)
    last_day = max([rates[-1]["from_us"] // DAY_US, *by_day])
    end_day = last_day + 1 if booked_us == FOREVER_US else booked_us // DAY_US
    for day in range(min([first_us // DAY_US, *by_day]), end_day):
        expected = Counter(_lines(day, rates, rows["size"], rows["use"]))
        if expected != by_day[day]:
            found, wanted = _micros(by_day[day]), _micros(expected)
            yield Fault(where=f"cost {host_id}, day {day}", what=f"{found} micro-units, must be {wanted}")


def _micros(lines: Counter[tuple[Any, ...]]) -> str:
    return f"{sum(line[-1] * count for line, count in lines.items())} in {lines.total()} lines"


def _check_reversals(rows: Sequence[Named]) -> Iterator[Fault]:
    by_number = {row["number"]: row for row in rows}
    seen: set[int] = set()
    for row in rows:
        other = by_number.get(row["reverses"])
        where = f"cost {row['number']}"
        if row["kind"] != "reversal":
            if row["reverses"]:
                yield Fault(where=where, what="is not a reversal, but reverses a line")
        elif other is None or other["kind"] == "reversal" or other["number"] >= row["number"]:
            yield Fault(where=where, what="reverses a line that does not exist")
        elif other["number"] in seen or row["micros"] != -other["micros"] or not _is_alike(row, other):
            yield Fault(where=where, what=f"is not the exact opposite of line {other['number']}")
        seen.add(row["reverses"])


def _is_alike(row: Named, other: Named) -> bool:
    return all(row[name] == other[name] for name in TAKEN_BACK)


class _Slot(NamedTuple):
    """A part of a day during which nothing changes."""

    from_us: int
    until_us: int
    rate: Named
    shares: Mapping[tuple[str, str], Fraction]
    """By instance and project."""


def _lines(
    day: int, rates: Sequence[Named], sizes: Sequence[Named], uses: Sequence[Named]
) -> list[tuple[Any, ...]]:
    found = []
    for number, group in groupby(_slots(day, rates, sizes, uses), lambda slot: slot.rate["number"]):
        slots = list(group)
        rate = next(each for each in rates if each["number"] == number)
        begin_us, end_us = slots[0].from_us, slots[-1].until_us
        hourly = rate["micros_per_hour"]
        total = _floor(hourly, end_us - rate["from_us"]) - _floor(hourly, begin_us - rate["from_us"])
        tail = (month_of(day * DAY_US), begin_us, end_us, rate["currency"])
        if rate["instance_id"]:
            found.append(("rental", rate["instance_id"], rate["project_id"], *tail, total))
            continue
        used = list(_used(slots, hourly))
        left = total - sum(line[-1] for line in used)
        found += [*used, ("idle", "", "", *tail, left)]
    return [line for line in found if line[-1]]


def _floor(hourly: int, us: int) -> int:
    return hourly * us // HOUR_US


def _used(slots: Sequence[_Slot], hourly: int) -> Iterator[tuple[Any, ...]]:
    """For each instance the periods with one share, without gaps."""
    for holder in sorted({holder for slot in slots for holder in slot.shares}):
        for share, group in groupby(slots, lambda slot, holder=holder: slot.shares.get(holder)):  # type: ignore[misc]
            if share is None:
                continue
            run = list(group)
            from_us, until_us, rate = run[0].from_us, run[-1].until_us, run[0].rate
            micros = (share * hourly * (until_us - from_us) / HOUR_US).__floor__()
            yield ("use", *holder, month_of(from_us), from_us, until_us, rate["currency"], micros)


def _slots(
    day: int, rates: Sequence[Named], sizes: Sequence[Named], uses: Sequence[Named]
) -> Iterator[_Slot]:
    begin_us, end_us = day * DAY_US, (day + 1) * DAY_US
    marks = {row["from_us"] for rows in (rates, sizes, uses) for row in rows}
    marks |= {row["until_us"] for row in uses if row["until_us"] is not None}
    edges = sorted({begin_us, end_us, *(us for us in marks if begin_us < us < end_us)})
    for from_us, until_us in pairwise(edges):
        counting = [rate for rate in rates if rate["from_us"] <= from_us]
        if not counting or not counting[-1]["micros_per_hour"]:
            continue
        here = [
            use
            for use in uses
            if use["from_us"] <= from_us and (use["until_us"] is None or from_us < use["until_us"])
        ]
        yield _Slot(from_us, until_us, counting[-1], _shares(sizes, from_us, here))


def _shares(sizes: Sequence[Named], us: int, uses: Sequence[Named]) -> Mapping[tuple[str, str], Fraction]:
    past = [size for size in sizes if size["from_us"] <= us] or list(sizes[:1])
    names = ("gpu_parts",) if past and past[-1]["gpu_parts"] else ("vcpus", "ram_bytes")
    wholes = [past[-1][name] if past else 0 for name in names]
    found = {}
    for use in uses:
        parts = [Fraction(use[name], whole) for name, whole in zip(names, wholes, strict=True) if whole]
        found[use["instance_id"], use["project_id"]] = sum(parts, Fraction(0)) / len(names)
    total = sum(found.values(), Fraction(0))
    return {holder: share / total if total > 1 else share for holder, share in found.items()}
