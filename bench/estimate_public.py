"""How near the estimate comes on whole steps of other cards, each left out of the fit, and on virtual cards.

Truth are `public_steps.csv` (steps from public tables, rows marked ok, models of the zoo) and `h200_knobs.csv` (an
H200 with its clock locked, its power limited or a share of its SMs), where a checkout has them beside it. Beside the
model stands the simplest form of it: the floor there, plus what the H200 takes above its floor times the ratio of
SMs and clocks, with nothing fitted.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from pathlib import Path
from statistics import median

from lab.fit_cards import Judged, left_out
from lab.fit_knobs import knobs
from lab.fit_knobs import left_out as knobs_left_out
from lab.public import PublicStep, public_steps

from bench.figures import Figure, Section
from teraflock.estimate.bounds import card_model, work_class
from teraflock.estimate.cards import peaks
from teraflock.estimate.scaled import LAUNCH_SECONDS, Scaled
from teraflock.estimate.speed import PEAKS_H200, floor_seconds, rate_kind

DIFFERENT = 1.1
BIAS_MAX = 5

Said = tuple[PublicStep, float]


def measure(truth: Path) -> Iterator[Section]:
    model = card_model()
    rows = [Judged(row, model) for row in public_steps(truth / "public_steps.csv")]
    judged = left_out(rows)
    yield _section("whole steps of public tables, each card left out of the fit", _covered(judged), judged)
    yield _section(
        "the same by the one-line form: floor there + excess x SMs x clock",
        None,
        [(each, each.row.step.seconds_where_gpu_takes(_one_line(each.row))) for each in rows],
    )
    if (truth / "h200_knobs.csv").is_file():
        yield _virtual(truth / "h200_knobs.csv")


def _covered(judged: Sequence[tuple[Judged, float]]) -> float:
    """Per cent of the rows within the interval that a card never seen gets."""
    inside = 0
    for each, said in judged:
        step = each.row.step
        there = peaks(each.row.card)
        assert there is not None
        low, high = step.interval(there, card_model().doubt["seen"])
        shift = said / step.seconds(there)
        inside += low * shift <= each.row.seconds <= high * shift
    return 100 * inside / max(1, len(judged))


def _one_line(row: PublicStep) -> float:
    """Seconds of the GPU. Plain fp32 goes by its own curves here too."""
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
    said = [(each.row, seconds) for each, seconds in judged]
    errors = sorted(100 * abs(seconds / row.seconds - 1) for row, seconds in said)
    ordered, pairs = _order(said)
    bars = covered is not None
    figures = [
        Figure(what="step time, median error", unit="%", samples=(median(errors),), bar=10 if bars else None),
        Figure(
            what="step time, 90th percentile", unit="%", bar=27 if bars else None,
            samples=(errors[min(len(errors) - 1, int(0.9 * len(errors)))],),
        ),
        *_biases(said, BIAS_MAX if bars else None),
        Figure(
            what="order of two cards right", unit="%", at_least=True, bar=97 if bars else None,
            samples=(100 * ordered / max(1, pairs),),
        ),
    ]  # fmt: skip
    if covered is not None:
        figures.append(Figure(what="p10 to p90 covers (80 ± 7)", unit="%", samples=(covered,)))
    return Section(
        title=title,
        figures=tuple(figures),
        notes=(
            f"{len(said)} rows on {len({row.card.id for row, _ in said})} cards, {pairs} pairs of them on one question",
            "by card: " + _by(said, lambda row: row.card.id),
            "by precision: " + _by(said, lambda row: row.workload.precision),
        ),
    )


def _biases(said: Sequence[Said], bar: float | None) -> Iterator[Figure]:
    by: dict[str, list[float]] = defaultdict(list)
    for row, seconds in said:
        by[row.workload.precision].append(100 * (seconds / row.seconds - 1))
    for precision, values in sorted(by.items()):
        yield Figure(
            what=f"bias, {precision} (either way)", unit="%", samples=(abs(median(values)),), bar=bar
        )


def _by(said: Sequence[Said], of: Callable[[PublicStep], str]) -> str:
    found: dict[str, list[float]] = defaultdict(list)
    for row, seconds in said:
        found[of(row)].append(100 * (seconds / row.seconds - 1))
    return ", ".join(
        f"{name} {median(map(abs, values)):.0f} % ({median(values):+.0f})"
        for name, values in sorted(found.items())
    )


def _order(said: Sequence[Said]) -> tuple[int, int]:
    by: dict[object, list[Said]] = defaultdict(list)
    for row, seconds in said:
        by[row.question].append((row, seconds))
    ordered = pairs = 0
    for mine in by.values():
        for (one, first), (other, second) in combinations(mine, 2):
            quick, slow = sorted((one.seconds, other.seconds))
            if one.card.id != other.card.id and slow > DIFFERENT * quick:
                pairs += 1
                ordered += (one.seconds < other.seconds) == (first < second)
    return ordered, pairs


def _virtual(path: Path) -> Section:
    judged = knobs_left_out(list(knobs(path)), card_model())
    errors = [100 * abs(value) for _, value in judged]
    by: dict[str, list[float]] = defaultdict(list)
    for each, value in judged:
        by[f"{each.setting[0]} {each.setting[1]}"].append(100 * abs(value))
    return Section(
        title="virtual cards: an H200 with its knobs turned, each setting left out of the fit",
        figures=(Figure(what="step time, median error", unit="%", samples=(median(errors),), bar=8),),
        notes=(
            f"{len(errors)} rows",
            ", ".join(f"{name} {median(values):.0f} %" for name, values in sorted(by.items())),
        ),
    )
