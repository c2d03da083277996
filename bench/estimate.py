"""Compare estimates with measurements on an H200, and measure how fast an estimate is.

Uses rows that no parameter was fitted on: `lab/measured/judge*` and, if available, `../shared/truth/h200.csv` and
`h200_fits.csv`. The split never changes, see lab/README.md. `bench/estimate_cards.py` covers other cards.
"""

import csv
import os
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from lab.jobs import workload_of
from lab.probe import SHARED_MICROSECONDS
from lab.rows import as_job, read_lines, read_rows

from bench import estimate_cards, estimate_configs, estimate_parts, estimate_public
from bench.figures import Figure, Section
from bench.processes import TERA, Run, run
from teraflock.base.errors import BadInput
from teraflock.base.quantities import GIB
from teraflock.catalog.cards import card
from teraflock.estimate.answer import answer
from teraflock.estimate.cards import MEASURED_ID
from teraflock.estimate.estimator import Estimator, seconds_on, step_of
from teraflock.estimate.model import Estimate, Limit, Question
from teraflock.estimate.step import OWN, SHARED, Seconds
from teraflock.workload.model import Workload
from teraflock.workload.zoo import entry

ROOT = Path(__file__).parents[1]
MEASURED = ROOT / "lab/measured"
TRUTH = ROOT.parent / "shared/truth"
COLD_RUNS = 7
MANY_RUNS = 3
DRAWN = ("judge_usual", "judge_wild")

Row = tuple[Workload, dict[str, float]]


def measure() -> Iterator[Section]:
    yield _accuracy("rows of lab/measured/judge", list(own_rows("judge")))
    yield _accuracy(
        "Adafactor, LoRA ranks, generators, fp16: judge_more", list(own_rows("judge_more")), context=True
    )
    for name, where in (("judge_usual", "from common settings"), ("judge_wild", "from all settings")):
        drawn = list(table_rows(MEASURED / f"{name}.csv"))
        yield _accuracy(f"random rows {where}: {name}, host unknown", drawn)
        yield _accuracy("the same, own or shared host from a probe", drawn, probed=True)
    yield _accuracy(
        "torch.compile: judge_compiled, own or shared host from a probe",
        # The networks of generators were called directly, so they were not compiled.
        [row for row in own_rows("judge_compiled") if entry(row[0].model).kind != "generator"],
        probed=True,
    )
    yield _accuracy("torch.compile: judge_encoders, the same", list(own_rows("judge_encoders")), probed=True)
    drawn = list(table_rows(MEASURED / "judge_again.csv"))
    yield _accuracy("random rows: judge_again, own or shared host from a probe", drawn, probed=True)
    yield _accuracy("the same, host unknown", drawn)
    if (TRUTH / "h200.csv").is_file():
        yield _accuracy("rows of truth/h200.csv", list(table_rows(TRUTH / "h200.csv")))
    yield _fits("limits of lab/measured/judge_fits", list(own_fits()))
    if (TRUTH / "h200_fits.csv").is_file():
        yield _fits("limits of truth/h200_fits.csv", list(truth_fits()))
    if (TRUTH / "kernels").is_dir():
        yield from estimate_cards.measure(TRUTH / "kernels")
    if (TRUTH / "public_steps.csv").is_file():
        yield from estimate_public.measure(TRUTH)
    yield from estimate_parts.measure(MEASURED)
    yield from estimate_configs.measure(MEASURED)
    yield _speed()


def own_rows(name: str) -> Iterator[Row]:
    for job in read_lines(MEASURED / f"{name}.jsonl.gz"):
        known = {"live": job["live"], "reserved": job["reserved"], "seconds": job["median"]}
        yield workload_of(job["job"]), {**known, "probe": job.get("probe", 0.0)}


def table_rows(path: Path) -> Iterator[Row]:
    for row in read_rows(path):
        known = {
            "live": float(row["live_peak_bytes"]),
            "reserved": float(row["reserved_peak_bytes"]),
            "seconds": float(row["step_seconds_median"]),
            "probe": float(row.get("probe_microseconds") or 0),
        }
        yield workload_of(as_job(row)), known


def own_fits() -> Iterator[Row]:
    for job in read_lines(MEASURED / "judge_fits.jsonl.gz"):
        known = {"cap": job["job"]["cap"], "largest": job["largest"], "fails": job["smallest_fail"]}
        yield workload_of({**job["job"], "batch": 1}), known


def truth_fits() -> Iterator[Row]:
    with (TRUTH / "h200_fits.csv").open() as lines:
        for row in csv.DictReader(lines):
            known = {
                "cap": float(row["memory_cap_gib"]),
                "largest": float(row["largest_batch_that_fits"]),
                "fails": float(row["smallest_batch_that_fails"]),
            }
            yield workload_of({**row, "batch": 1, "ckpt": 0, "lora": 0}), known


def _accuracy(title: str, rows: list[Row], *, context: bool = False, probed: bool = False) -> Section:
    """Set `context` for steps measured under `with torch.device(…)`, to include its overhead, and `probed` for rows
    with a probe of the host."""
    errors: dict[str, list[float]] = defaultdict(list)
    families: dict[str, list[float]] = defaultdict(list)
    kinds: dict[str, list[float]] = defaultdict(list)
    covered = 0
    notes = []
    for workload, known in rows:
        try:
            host = OWN if probed and known["probe"] < SHARED_MICROSECONDS else SHARED
            estimate = answer(workload, Question(cards=[card(MEASURED_ID)], host=host))
        except BadInput as error:
            notes.append(f"skipped: {error.sentence}")
            continue
        answered = _h200(estimate)
        seconds = _in_context(workload) if context else answered
        errors["live"].append(100 * abs(estimate.memory.live_peak_bytes / known["live"] - 1))
        errors["reserved"].append(100 * abs(estimate.memory.reserved_peak_bytes / known["reserved"] - 1))
        errors["seconds"].append(100 * abs(seconds.p50 / known["seconds"] - 1))
        errors["answered"].append(100 * abs(answered.p50 / known["seconds"] - 1))
        families[f"{workload.model} {workload.task}"].append(errors["seconds"][-1])
        kinds[entry(workload.model).kind].append(errors["seconds"][-1])
        covered += seconds.p10 <= known["seconds"] <= seconds.p90
    worst = sorted(families.items(), key=lambda each: -median(each[1]))[:5]
    notes.append("worst in time: " + ", ".join(f"{name} {median(values):.0f} %" for name, values in worst))
    notes.append(
        "in time: "
        + ", ".join(f"{kind} {median(its):.1f} % ({len(its)})" for kind, its in sorted(kinds.items()))
    )
    count = len(errors["live"])
    if context:
        middle, most = (_figure("", errors["answered"], at, 0).samples[0] for at in (0.5, 0.9))
        notes.append(
            f"without the cost of `with torch.device(…)`: {middle:.1f} %, 90th percentile {most:.1f} %"
        )
    return Section(
        title=title,
        figures=(
            _figure("live peak, median error", errors["live"], 0.5, 2),
            _figure("live peak, 95th percentile", errors["live"], 0.95, 6),
            _figure("reserved peak, median error", errors["reserved"], 0.5, 8),
            _figure("step time, median error", errors["seconds"], 0.5, 10),
            _figure("step time, 90th percentile", errors["seconds"], 0.9, 25),
            Figure(what="p10 to p90 covers (80 ± 7)", unit="%", samples=(100 * covered / max(1, count),)),
        ),
        notes=(f"{count} rows", *notes),
    )


def _fits(title: str, rows: list[Row]) -> Section:
    off, over, notes = [], [], []
    for workload, known in rows:
        limit = Limit(f"{known['cap']:g}GiB", int(known["cap"] * GIB))
        try:
            largest = answer(workload, Question(limits=[limit])).gpus[0].largest_batch or 0
        except BadInput as error:
            notes.append(f"skipped: {error.sentence}")
            continue
        off.append(100 * abs(largest / known["largest"] - 1) if known["largest"] else 100.0 * (largest > 0))
        over.append(100 * (largest / known["fails"] - 1))
        if off[-1] > 6:
            notes.append(
                f"{workload.model} {workload.precision} in {limit.text}: {largest}, measured {known['largest']:g}"
            )
    return Section(
        title=title,
        figures=(
            Figure(
                what="largest batch within 6 %", unit="%", at_least=True, bar=90,
                samples=(100 * sum(each <= 6 for each in off) / max(1, len(off)),),
            ),
            Figure(what="largest excess over the smallest failure", unit="%", bar=3, samples=(max(over, default=0.0),)),
        ),
        notes=(f"{len(off)} rows", *notes),
    )  # fmt: skip


def _speed() -> Section:
    cold = [run([TERA, "estimate", "resnet50", "--batch", "64", "--json"]) for _ in range(COLD_RUNS)]
    with tempfile.NamedTemporaryFile("w", suffix=".csv") as table:
        table.write(_hundred())
        table.flush()
        many = [run([TERA, "estimate", "--from", table.name]) for _ in range(MANY_RUNS)]
    return Section(
        title="speed",
        figures=(
            Figure(what="zoo estimate, all cards, cold", unit="ms", samples=_wall(cold, 1000), bar=150),
            Figure(what="--from, 100 workloads, all cards", unit="s", samples=_wall(many, 1), bar=3),
        ),
        notes=(
            f"user and system time: {1000 * median(each.cpu_seconds for each in cold):.0f} ms cold, "
            f"{median(each.cpu_seconds for each in many):.1f} s for the 100, shared by {os.cpu_count()} processors",
        ),
    )


def _wall(runs: list[Run], factor: float) -> tuple[float, ...]:
    return tuple(factor * each.wall_seconds for each in runs)


def _hundred() -> str:
    """The first hundred of the drawn rows, as a table for `--from`."""
    columns = ["model", "task", "batch", "seq", "image_size", "precision", "optimizer"]
    columns += ["gradient_checkpointing", "lora_rank"]
    drawn = [row for name in DRAWN for row in read_rows(MEASURED / f"{name}.csv")][:100]
    lines = [",".join(str(row.get(each) or "") for each in columns) for row in drawn]
    return "\n".join([",".join(columns), *lines, ""])


def _h200(estimate: Estimate) -> Seconds:
    seconds = estimate.gpus[0].step_seconds
    assert seconds is not None
    return seconds


def _in_context(workload: Workload) -> Seconds:
    estimator = Estimator(workload)
    step = step_of(estimator, estimator.scene(), context=True)
    seconds = seconds_on(estimator, step, card(MEASURED_ID))
    assert seconds is not None
    return seconds


def _figure(what: str, values: list[float], at: float, bar: float) -> Figure:
    ranked = sorted(values)
    return Figure(
        what=what, unit="%", samples=(ranked[min(len(ranked) - 1, int(len(ranked) * at))],), bar=bar
    )
