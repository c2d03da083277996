"""Plans equal a brute-force search, and the checker finds every fault."""

from fractions import Fraction
from itertools import product
from math import ceil
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.unit.plan.random_shapes import ON, RATES, estimate, random_shapes, random_wish

from teraflock.catalog.costs import EXTRA_WORDS
from teraflock.offer.model import Shape
from teraflock.plan.assumptions import billing_of, notice_of, shipped_assumptions
from teraflock.plan.check import faults
from teraflock.plan.cost import with_interruptions
from teraflock.plan.model import Choice, CostPart, Hours, Misfit, Plan, Rejection, Wish
from teraflock.plan.rules import choose, order
from teraflock.plan.warnings import plan_warnings

SEEDS = st.integers(0, 2**32)
ASSUMED = shipped_assumptions()
NOTICES = {"aws": 120}  # seconds, for the providers of the random shapes


def planned(shapes: list[Shape], wish: Wish) -> Plan:
    return choose(shapes, wish, estimate, ASSUMED, RATES, ON)


def brute_force(shapes: list[Shape], wish: Wish) -> dict[tuple[str, int], Fraction]:
    """Return the cost of each suitable shape for each number of machines, in exact fractions of a micro-unit."""
    costs: dict[tuple[str, int], Fraction] = {}
    for shape, machines in product(shapes, range(wish.instances_min, wish.instances_max + 1)):
        hours = Hours(wish.hours, wish.hours, wish.hours) if wish.use != "job" else estimate(shape, machines)
        count, memory = (shape.gpu_count or 0) * machines, shape.gpu_memory_bytes
        asked_memory = wish.memory_bytes_min is not None or wish.memory_total_bytes_min is not None
        if (
            isinstance(hours, Misfit) or shape.standing != "priced" or shape.doubtful or shape.kind == "none"
            or (shape.kind == "other" and not (wish.use != "job" and shape.gpu in wish.cards))
            or shape.gpu_count is None
            or shape.price_micros_per_month is None or count < wish.gpus_min or count > (wish.gpus_max or 99)
            or (wish.providers and shape.provider not in wish.providers)
            or (wish.modes and shape.mode not in wish.modes)
            or (wish.cards and shape.gpu not in wish.cards)
            or (not wish.modes and shape.mode == "free") or (asked_memory and memory is None)
            or (memory or 0) < (wish.memory_bytes_min or 0)
            or (memory or 0) * count < (wish.memory_total_bytes_min or 0)
            or shape.outdated or shape.as_of < wish.newer_than
            or (shape.gpu_share < 1 and not wish.slices)
            or (wish.parts and (shape.gpu_share, memory) != (0.25, 16 << 30))
            or (machines > 1 and shape.provider == "vast")
        ):  # fmt: skip
            continue
        interrupted = shape.mode in ("spot", "bid") and wish.use == "job"
        notice = NOTICES.get(shape.provider, 0)
        real = [
            with_interruptions(h, 0.05 * machines, ASSUMED, notice) if interrupted else h
            for h in (hours.p10, hours.p50, hours.p90)
        ]
        if wish.deadline_hours is not None and real[2] > wish.deadline_hours:
            continue
        cost = machines * _rent(shape, wish, real[1]) + _extras(shape, wish, real[1], machines)
        if wish.budget_micros is None or round(cost) <= wish.budget_micros:
            costs[shape.instance_type, machines] = cost
    return costs


def _exchange(currency: str, wish: Wish) -> Fraction:
    there, here = (RATES.rate(each, ON).micros_per_usd for each in (currency, wish.currency))
    return Fraction(here, there)


def _rent(shape: Shape, wish: Wish, hours: float) -> Fraction:
    monthly = Fraction(round(Fraction(shape.price_micros_per_month or 0) * _exchange(shape.currency, wish)))
    if shape.mode in ("monthly", "reserved"):
        least = (shape.term_months or 12) if shape.mode == "reserved" else 1
        return monthly * max(least, ceil(hours / 730 - 1e-9))
    step = billing_of(shape.provider) if shape.mode != "owned" else None
    seconds = (
        ceil(round(hours * 3600, 6))
        if step is None
        else ceil(round(hours * 3600, 6) / step.step_seconds) * step.step_seconds
    )
    return monthly * max(seconds, step.minimum_seconds if step else 0) / (730 * 3600)


DISKS = {  # price per GB and month, while stopped, and whether it is billed by the hour
    "aws": ("0.08", "0.08", True), "lambda": ("0.20", "0.20", True), "paperspace": ("0.10", "0.10", True),
    "runpod": ("0.10", "0.20", True), "do": ("0.06", "0.06", False),
}  # fmt: skip
EGRESS = {"aws": ("0.09", 100), "lambda": ("0", 0), "runpod": ("0", 0), "do": ("0.01", 0)}
ADDRESSES = {"aws": "0.005"}


def _extras(shape: Shape, wish: Wish, hours: float, machines: int) -> Fraction:
    if shape.mode == "owned":
        return Fraction(0)
    cost, dollars, time = (
        Fraction(0),
        _exchange("USD", wish) * 10**6,
        Fraction(round(hours * 3.6e9), 3_600_000_000),
    )
    given = wish.disk_micros_per_gb(shape.provider)
    if wish.disk_gb and given is not None:
        months = Fraction(1) if wish.use == "monthly" else time / 730
        cost += machines * Fraction(wish.disk_gb) * given * months
    elif wish.disk_gb and shape.provider in DISKS:
        running, stopped, prorated = DISKS[shape.provider]
        used = min(time / 730, Fraction(1))
        months = time / 730 if prorated else Fraction(max(1, ceil(hours / 730 - 1e-9)))
        per_gb = (
            used * Fraction(running) + (1 - used) * Fraction(stopped)
            if wish.use == "monthly"
            else months * Fraction(running)
        )
        cost += machines * per_gb * Fraction(wish.disk_gb) * dollars
    if wish.address and shape.provider in ADDRESSES:
        cost += machines * Fraction(ADDRESSES[shape.provider]) * time * dollars
    if wish.egress_micros_per_gb is not None:
        cost += Fraction(wish.egress_gb) * wish.egress_micros_per_gb
    elif shape.provider in EGRESS:
        price, free = EGRESS[shape.provider]
        cost += max(Fraction(0), Fraction(wish.egress_gb) - free) * Fraction(price) * dollars
    return cost


def uncounted(shape: Shape, wish: Wish) -> set[str]:
    """Return the requested costs whose price nobody knows."""
    missing = {
        "disk": bool(wish.disk_gb)
        and shape.provider not in DISKS
        and wish.disk_micros_per_gb(shape.provider) is None,
        "egress": bool(wish.egress_gb) and wish.egress_micros_per_gb is None and shape.provider not in EGRESS,
        "address": wish.address and shape.provider not in ADDRESSES,
    }
    return {name for name, is_missing in missing.items() if is_missing and shape.mode != "owned"}


@settings(max_examples=400, deadline=None)
@given(seed=SEEDS)
def test_a_plan_equals_brute_force(seed: int) -> None:
    random = Random(seed)
    shapes, wish = random_shapes(random, random.choice((0, 1, 5, 40))), random_wish(random)
    plan, expected = planned(shapes, wish), brute_force(shapes, wish)
    found = {(choice.shape.instance_type, choice.instances): choice for choice in plan.choices}
    assert found.keys() == expected.keys()
    assert len(found) == len(plan.choices)
    for key, choice in found.items():
        assert (
            abs(choice.cost.expected_micros - expected[key]) <= 2 * choice.instances + 1
        )  # each part is rounded
        assert set(choice.uncounted) == uncounted(choice.shape, wish)
        taken_back = 0.05 * choice.instances if choice.shape.mode in ("spot", "bid") else 0.0
        assert choice.interruptions == pytest.approx(taken_back * choice.hours.p50)
    assert list(plan.choices) == sorted(plan.choices, key=order(wish))


@settings(max_examples=300, deadline=None)
@given(seed=SEEDS)
def test_no_plan_ranks_an_uncounted_cost_above_a_counted_one_without_saying_so(seed: int) -> None:
    random = Random(seed)
    shapes = random_shapes(random, 40)
    wish = replace(random_wish(random), disk_gb=50.0, deadline_hours=None, budget_micros=None)
    plan = planned(shapes, wish)
    incomplete = [bool(uncounted(choice.shape, wish)) for choice in plan.choices]
    if wish.sort == "risk":  # of equal risk, complete costs come first
        pairs = [(choice.interruptions, part) for choice, part in zip(plan.choices, incomplete, strict=True)]
        assert pairs == sorted(pairs)
    if wish.sort == "cost":
        assert incomplete == sorted(incomplete), "complete costs come first"
        for flag in (False, True):
            costs = [
                c.cost.expected_micros
                for c, part in zip(plan.choices, incomplete, strict=True)
                if part == flag
            ]
            assert costs == sorted(costs)
    said = " ".join(plan_warnings(plan.choices[:5], plan.choices, wish, ASSUMED, ON))
    for choice in plan.choices:
        for extra in uncounted(choice.shape, wish):
            assert extra in choice.uncounted
            assert f"the price of the {EXTRA_WORDS[extra]} is unknown at" in said
            assert choice.shape.provider in said


@settings(max_examples=300, deadline=None)
@given(seed=SEEDS)
def test_every_plan_passes_the_checker_and_has_one_reason_per_rejection(seed: int) -> None:
    random = Random(seed)
    shapes, wish = random_shapes(random, 30), random_wish(random)
    plan = planned(shapes, wish)
    assert list(faults(plan, shapes, wish, estimate, ASSUMED, RATES, ON)) == []
    chosen = {choice.shape.instance_type for choice in plan.choices}
    assert len(chosen) + len(plan.rejected) == len(shapes)
    assert all(rejection.reason and not rejection.reason.endswith(".") for rejection in plan.rejected)


def damaged(plan: Plan, number: int) -> Plan:
    first = plan.choices[0]
    cost = first.cost
    changes: list[Choice] = [
        replace(first, cost=replace(cost, expected_micros=cost.expected_micros - 1)),
        replace(first, parts=(*first.parts, CostPart("rent", 1, "made up"))),
        replace(first, hours=Hours(1e-6, 1e-6, 1e-6)),
        replace(first, shape=replace(first.shape, standing="unknown")),
        replace(first, shape=replace(first.shape, doubtful=True)),
        replace(first, pareto=not first.pareto),
        replace(first, cost=replace(cost, low_micros=cost.high_micros + 1)),
        replace(first, shape=replace(first.shape, gpu_count=99)),
        replace(first, cost=replace(cost, expected_micros=cost.expected_micros + 1000), parts=()),
        replace(
            first, hours=Hours(*(1.01 * each for each in (first.hours.p10, first.hours.p50, first.hours.p90)))
        ),
        replace(first, instances=2),
        replace(first, interruptions=first.interruptions + 1),
    ]
    if number < len(changes):
        return replace(plan, choices=(changes[number], *plan.choices[1:]))
    return [
        replace(plan, choices=plan.choices[1:]),
        replace(plan, choices=tuple(reversed(plan.choices))),
        replace(plan, rejected=(*plan.rejected, Rejection(first.shape, "no_gpu", "has no GPU"))),
        replace(plan, rejected=(replace(plan.rejected[0], code="", reason=""), *plan.rejected[1:])),
        replace(
            plan,
            choices=plan.choices[1:],
            rejected=(*plan.rejected, Rejection(first.shape, "no_gpu", "has no GPU")),
        ),
        replace(plan, choices=(first, *plan.choices)),
    ][number - len(changes)]


@pytest.mark.parametrize("number", range(18))
def test_the_checker_finds_every_fault(number: int) -> None:
    random = Random(7)
    shapes = [shape for shape in random_shapes(random, 60) if shape.price_micros_per_month != 0]
    wish = Wish(use="hours", hours=100.0, gpus_max=8)
    plan = planned(shapes, wish)
    assert len(plan.choices) > 3
    assert list(faults(plan, shapes, wish, estimate, ASSUMED, RATES, ON)) == []
    assert list(faults(damaged(plan, number), shapes, wish, estimate, ASSUMED, RATES, ON)) != []


def simulated_hours(hours: float, per_hour: float, notice: float, random: Random) -> float:
    """Simulate one run of a job with random interruptions. With enough notice, it saves its work."""
    checkpoint, restart = ASSUMED.checkpoint_seconds / 3600, ASSUMED.restart_seconds / 3600
    interval = min(hours, (2 * checkpoint / per_hour) ** 0.5)
    done = clock = 0.0
    while done < hours:
        work = min(interval, hours - done)
        needed = work + (checkpoint if done + work < hours else 0.0)
        until = random.expovariate(per_hour)
        if until >= needed:
            clock += needed
            done += work
        else:
            clock += until + restart
            if notice >= ASSUMED.checkpoint_seconds:
                done += min(work, max(0.0, until - checkpoint))
    return clock


@pytest.mark.parametrize("notice", [0.0, 30.0, 120.0])
@pytest.mark.parametrize(("hours", "per_hour"), [(10.0, 0.05), (100.0, 0.05), (100.0, 0.2), (5.0, 0.01)])
def test_the_cost_of_interruptions_equals_a_simulation(hours: float, per_hour: float, notice: float) -> None:
    random = Random(1)
    runs = [simulated_hours(hours, per_hour, notice, random) for _ in range(4000)]
    mean = sum(runs) / len(runs)
    assert with_interruptions(hours, per_hour, ASSUMED, notice) == pytest.approx(mean, rel=0.03)


def test_a_notice_long_enough_for_a_checkpoint_saves_work() -> None:
    without, short, enough = (
        with_interruptions(100.0, 0.1, ASSUMED, notice) for notice in (0.0, 30.0, 120.0)
    )
    assert without == short > enough > 100.0
    assert (notice_of("aws").seconds, notice_of("gcp").seconds) == (120, 30)
    assert notice_of("tencent").seconds == 0, "a notice that is not confirmed counts as none"


def test_without_interruptions_nothing_is_added() -> None:
    assert with_interruptions(12.5, 0.0, ASSUMED) == 12.5
    assert with_interruptions(10.0, 9.0, replace(ASSUMED, restart_seconds=3600.0)) == float("inf")
