"""Measure the accuracy of estimates for whole steps on other cards, each left out of the fit, and on virtual cards.

The truth is `public_steps.csv` (steps of zoo models from public tables, rows marked ok) and `h200_knobs.csv` (an H200
with a locked clock, limited power or a fraction of its SMs), if available. One table was measured on slow hosts; rows
of it that the host limits are not judged, but they show its pace. The baseline is the simplest model, without
fitted parameters: the minimum time on the card, plus the excess of the H200 over its minimum, scaled by SMs and clock.

Two cards form a pair if a table has the same model, task, sizes and precision of both. Where their batches differ, as
in tables that fill each card, the time per sample is compared. Pairs with the same batch are also counted alone.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from pathlib import Path
from statistics import median

from lab.fit_cards import Judged, left_out
from lab.fit_knobs import knobs
from lab.fit_knobs import left_out as knobs_left_out
from lab.public import PublicStep, paces, public_steps
from msgspec.structs import replace

from bench.figures import Figure, Section
from teraflock.estimate.bounds import card_model, work_class
from teraflock.estimate.cards import peaks
from teraflock.estimate.scaled import LAUNCH_SECONDS, Scaled
from teraflock.estimate.speed import PEAKS_H200, floor_seconds, rate_kind

DIFFERENT = 1.1
BIAS_MAX = 5

StepEstimate = tuple[PublicStep, float]


def measure(truth: Path) -> Iterator[Section]:
    model = card_model()
    rows = [Judged(row, model) for row in public_steps(truth / "public_steps.csv")]
    judged = left_out(rows)
    yield _section("whole steps of public tables, each card left out of the fit", _covered(judged), judged)
    yield _section(
        "the same with the numbers that ship, which are fitted on these steps",
        None,
        [(each, each.seconds(model.age)) for each in rows],
    )
    hosts = paces(truth / "public_steps.csv")
    hosted = [replace(each, pace=hosts.get(each.row.host)) for each in rows]
    yield _section("the same, with the pace of the host where a table shows it", None, left_out(hosted))
    yield _section(
        "the same with the baseline: minimum on the card + excess × SMs × clock",
        None,
        [(each, each.row.step.seconds_where_gpu_takes(_one_line(each.row))) for each in rows],
    )
    if (truth / "h200_knobs.csv").is_file():
        yield _virtual(truth / "h200_knobs.csv")


def _covered(judged: Sequence[tuple[Judged, float]]) -> float:
    """Return the percentage of rows within the interval for a card without measurements."""
    inside = 0
    for each, estimates in judged:
        step = each.row.step
        there = peaks(each.row.card)
        assert there is not None
        low, high = step.interval(there, card_model().doubt["seen"])
        shift = estimates / step.seconds(there)
        inside += low * shift <= each.row.seconds <= high * shift
    return 100 * inside / max(1, len(judged))


def _one_line(row: PublicStep) -> float:
    """Return the seconds of the GPU. Plain fp32 uses its own curves."""
    there, scaled = peaks(row.card), row.step.scaled
    assert there is not None
    sms = PEAKS_H200.sms * PEAKS_H200.clock / (there.sms * there.clock)
    total = scaled.fixed
    for work, count, seconds in scaled.items:
        if scaled.in_plain((work_class(work, tf32=scaled.tf32), rate_kind(work, tf32=scaled.tf32)), there):
            total += Scaled([(work, count, 0.0)], tf32=scaled.tf32).seconds_on(there)
            continue
        body = seconds - min(seconds, LAUNCH_SECONDS)
        floor, there_floor = (floor_seconds(work, each, tf32=scaled.tf32) for each in (PEAKS_H200, there))
        total += count * (there_floor * min(1.0, body / max(floor, 1e-12)) + max(0.0, body - floor) * sms)
    return total


def _section(title: str, covered: float | None, judged: Sequence[tuple[Judged, float]]) -> Section:
    estimates = [(each.row, seconds) for each, seconds in judged]
    errors = sorted(100 * abs(seconds / row.seconds - 1) for row, seconds in estimates)
    bars = covered is not None
    figures = [
        Figure(what="step time, median error", unit="%", samples=(median(errors),), bar=10 if bars else None),
        Figure(
            what="step time, 90th percentile", unit="%", bar=27 if bars else None,
            samples=(errors[min(len(errors) - 1, int(0.9 * len(errors)))],),
        ),
        *_biases(estimates, BIAS_MAX if bars else None),
    ]  # fmt: skip
    counts = []
    for what, same_batch in (("any batches", False), ("the same batch", True)):
        ordered, pairs = order(estimates, same_batch=same_batch)
        counts.append(f"{ordered} of {pairs} pairs with {what}")
        figures.append(
            Figure(
                what=f"pairs in the right order, {what}", unit="%", at_least=True, bar=97 if bars else None,
                samples=(100 * ordered / max(1, pairs),),
            )
        )  # fmt: skip
    if covered is not None:
        figures.append(Figure(what="p10 to p90 covers (80 ± 7)", unit="%", samples=(covered,)))
    return Section(
        title=title,
        figures=tuple(figures),
        notes=(
            f"{len(estimates)} rows on {len({row.card.id for row, _ in estimates})} cards; "
            f"in order: {', '.join(counts)}",
            "by card: " + _by(estimates, lambda row: row.card.id),
            "by precision: " + _by(estimates, lambda row: row.workload.precision),
        ),
    )


def _biases(estimates: Sequence[StepEstimate], bar: float | None) -> Iterator[Figure]:
    by: dict[str, list[float]] = defaultdict(list)
    for row, seconds in estimates:
        by[row.workload.precision].append(100 * (seconds / row.seconds - 1))
    for precision, values in sorted(by.items()):
        yield Figure(what=f"absolute bias, {precision}", unit="%", samples=(abs(median(values)),), bar=bar)


def _by(estimates: Sequence[StepEstimate], of: Callable[[PublicStep], str]) -> str:
    found: dict[str, list[float]] = defaultdict(list)
    for row, seconds in estimates:
        found[of(row)].append(100 * (seconds / row.seconds - 1))
    return ", ".join(
        f"{name} {median(map(abs, values)):.0f} % ({median(values):+.0f})"
        for name, values in sorted(found.items())
    )


def order(estimates: Sequence[StepEstimate], *, same_batch: bool) -> tuple[int, int]:
    """How many pairs of cards are in the right order, and how many pairs there are."""
    by: dict[object, list[StepEstimate]] = defaultdict(list)
    for row, seconds in estimates:
        batch = row.workload.batch
        by[row.source, replace(row.workload, batch=batch if same_batch else 1)].append((row, seconds / batch))
    ordered = pairs = 0
    for mine in by.values():
        for (one, first), (other, second) in combinations(mine, 2):
            one_seconds, other_seconds = (each.seconds / each.workload.batch for each in (one, other))
            quick, slow = sorted((one_seconds, other_seconds))
            if one.card.id != other.card.id and slow > DIFFERENT * quick:
                pairs += 1
                ordered += (one_seconds < other_seconds) == (first < second)
    return ordered, pairs


def _virtual(path: Path) -> Section:
    judged = knobs_left_out(list(knobs(path)), card_model())
    errors = [100 * abs(value) for _, value in judged]
    by: dict[str, list[float]] = defaultdict(list)
    for each, value in judged:
        by[f"{each.setting[0]} {each.setting[1]}"].append(100 * abs(value))
    return Section(
        title="virtual cards: an H200 with changed settings, each setting left out of the fit",
        figures=(Figure(what="step time, median error", unit="%", samples=(median(errors),), bar=8),),
        notes=(
            f"{len(errors)} rows",
            ", ".join(f"{name} {median(values):.0f} %" for name, values in sorted(by.items())),
        ),
    )
