"""How near the estimate comes on parts of an H200 and on GPUs that split a model, by measurements of ours.

`judge_shares`: steps with 16, 26 and 60 of the 132 SMs beside the whole bandwidth. `judge_crowds`: two, four and eight
processes that run the same step at once, each with its share of the SMs, as busy slices do. `judge_sharded`: the peak
of each of several GPUs under DDP and ZeRO. Nothing was fitted on any of them; the form of `estimate/sharded.py` was
chosen with `judge_sharded` in sight. `judge_quantized`: LoRA in float32 over 4-bit
and 8-bit weights, with what the adapters of these runs added (`lab/drawn.py`). The times of two of its models were
fitted on (`estimate/quantized.py`) and only the others are judged. `judge_plain_shares`: 30 SMs with TF32 off, so
convolutions run as on GPUs without tensor cores. Nothing was fitted on it.
"""

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

from lab.drawn import more_outliers_bytes
from lab.fit_knobs import step_for
from lab.fit_split import WHOLE
from lab.jobs import workload_of
from lab.rows import read_lines
from msgspec.structs import replace

from bench.figures import Figure, Section
from teraflock.catalog.cards import card
from teraflock.catalog.model import CardSlice
from teraflock.estimate.bounds import card_model
from teraflock.estimate.cards import MEASURED_ID, peaks
from teraflock.estimate.derived import sliced
from teraflock.estimate.estimator import Estimator, step_of
from teraflock.estimate.reach import factor, fitted
from teraflock.estimate.speed import PEAKS_H200
from teraflock.estimate.step import OWN
from teraflock.estimate.survey import Survey
from teraflock.workload.model import Workload

FITTED_MODELS = ("llama-3.2-1b", "llama-3.2-3b")
STAGES = {"ddp": 0, "zero1": 1, "zero2": 2, "zero3": 3}


def measure(measured: Path) -> Iterator[Section]:
    shares = [row for row in read_lines(measured / "judge_shares.jsonl.gz") if row["sms"] < WHOLE]
    yield _steps("judge_shares: an H200 with fewer SMs and its whole bandwidth", shares, "min")
    # one copy stands for its crowd: the copies differ by at most 7 %
    crowds = [row for row in read_lines(measured / "judge_crowds.jsonl.gz") if not row["rank"]]
    yield _steps("judge_crowds: processes that share an H200 as busy slices do", crowds, "median")
    plain = list(read_lines(measured / "judge_plain_shares.jsonl.gz"))
    yield _without_tf32("judge_plain_shares: 30 SMs of an H200 with TF32 off", plain)
    yield _sharded(list(read_lines(measured / "judge_sharded.jsonl.gz")))
    rows = list(read_lines(measured / "judge_quantized.jsonl.gz"))
    for bits in ("4bit", "8bit"):
        yield _quantized(bits, [row for row in rows if row["case"]["load_in"] == bits])


def _steps(title: str, rows: list[dict[str, Any]], key: str) -> Section:
    by: dict[str, list[float]] = defaultdict(list)
    inside = 0
    model = card_model()
    for row in rows:
        part = CardSlice(
            family="", card_memory_gb=0, profile="", share=0, memory_gb=0,
            memory_share=1 / row["copies"], sms=row["sms"],
        )  # fmt: skip
        there = peaks(sliced(card(MEASURED_ID), part))
        assert there is not None
        step = step_for(workload_of(row["job"]), model)
        low, high = step.interval(there, model.doubt["same"])
        inside += low <= row[key] <= high
        by[f"{row['copies']} x {row['sms']} SMs"].append(100 * (step.seconds(there) / row[key] - 1))
    errors = [abs(each) for values in by.values() for each in values]
    return Section(
        title=title,
        figures=(
            Figure(what="step time, median error", unit="%", samples=(median(errors),), bar=8),
            Figure(what="p10 to p90 covers (80 ± 7)", unit="%", samples=(100 * inside / len(rows),)),
        ),
        notes=(
            f"{len(rows)} rows",
            ", ".join(
                f"{name}: {median(map(abs, values)):.0f} % ({median(values):+.0f})"
                for name, values in by.items()
            ),
        ),
    )


def _without_tf32(title: str, rows: list[dict[str, Any]]) -> Section:
    """The SMs reach what `estimate/reach.py` says about the H200, which it knows from matrix products."""
    errors, reach = [], fitted()
    for row in rows:
        share = row["sms"] / WHOLE
        fp32 = share * PEAKS_H200.fp32
        there = replace(
            PEAKS_H200, sms=row["sms"], fp32=fp32, tf32=0.0, half=share * PEAKS_H200.half,
            fp32_reach=factor(reach.matmul, card(MEASURED_ID)),
            square=fp32 * factor(reach.convolution, card(MEASURED_ID)),
        )  # fmt: skip
        step = step_for(workload_of(row["job"]), card_model())
        errors.append(100 * (step.seconds(there) / row["min"] - 1))
    return Section(
        title=title,
        figures=(
            Figure(what="step time, median error", unit="%", samples=(median(map(abs, errors)),)),
            Figure(what="bias", unit="%", samples=(median(errors),)),
        ),
        notes=(f"{len(rows)} rows; cuDNN chose the kernels without `cudnn.benchmark`",),
    )


def _sharded(rows: list[dict[str, Any]]) -> Section:
    by: dict[str, list[float]] = defaultdict(list)
    for row in rows:
        survey = Survey(workload_of(row["job"]), stage=STAGES[row["job"]["way"]])
        by[row["job"]["way"]].append(100 * abs(survey.need_bytes(row["job"]["gpus"]) / row["live"] - 1))
    errors = [each for values in by.values() for each in values]
    return Section(
        title="judge_sharded: live peak on each of 2 or 8 GPUs, by a fake process group",
        figures=(
            Figure(what="live peak, median error", unit="%", samples=(median(errors),), bar=2),
            Figure(what="live peak, largest error", unit="%", samples=(max(errors),), bar=6),
        ),
        notes=(
            f"{len(errors)} rows",
            ", ".join(
                f"{way} {median(values):.1f} %, at most {max(values):.1f} %" for way, values in by.items()
            ),
        ),
    )


def _quantized(bits: str, rows: list[dict[str, Any]]) -> Section:
    live, seconds, names = [], [], []
    for row in rows:
        case = row["case"]
        estimator = Estimator(
            Workload(
                model=case["model"], batch=case["batch"], seq=case["seq"], precision="bf16",
                optimizer=case["optimizer"], lora_rank=case["lora"], lora_targets="all", lora_dtype="fp32",
                load_in=bits, gradient_checkpointing=bool(case.get("ckpt")),
            )
        )  # fmt: skip
        peak = estimator.memory().live_peak_bytes + more_outliers_bytes(case)
        live.append(100 * (peak / row["live"] - 1))
        names.append(f"{case['model']} {case['batch']}x{case['seq']} {live[-1]:+.1f} %")
        if case["model"] not in FITTED_MODELS:
            taken = step_of(estimator, estimator.scene(), host=OWN).seconds(PEAKS_H200)
            seconds.append(100 * abs(taken / row["seconds"] - 1))
    return Section(
        title=f"judge_quantized: LoRA in float32 over {bits} weights",
        figures=(
            Figure(what="live peak, largest error", unit="%", samples=(max(map(abs, live)),), bar=3),
            Figure(what="step time, median error", unit="%", samples=(median(seconds),), bar=12),
        ),
        notes=(f"{len(live)} peaks, {len(seconds)} times", ", ".join(names)),
    )
