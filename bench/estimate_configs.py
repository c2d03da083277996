"""How near the estimate comes for models by config: training steps and serving, as measured on an H200.

`judge_configs`: steps of models by config, each without and with accumulated gradients; nothing was fitted on them.
`serve`: decoding and prefills. Half of the models were fitted on (`lab/fit_serving.py`) and only the others are judged.
"""

import csv
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from lab.fit_serving import FITTED

from bench.figures import Figure, Section
from teraflock.catalog.cards import card
from teraflock.estimate.cards import MEASURED_ID
from teraflock.estimate.estimator import Estimator, step_of
from teraflock.estimate.serving import Load, serve
from teraflock.estimate.speed import PEAKS_H200
from teraflock.estimate.step import OWN
from teraflock.workload.model import Workload


def measure(measured: Path) -> Iterator[Section]:
    yield _steps(list(csv.DictReader((measured / "judge_configs.csv").open())))
    yield _serving(list(csv.DictReader((measured / "serve.csv").open())))


def _steps(rows: list[dict[str, str]]) -> Section:
    live, seconds, worst = [], [], []
    for row in rows:
        estimator = Estimator(
            Workload(
                model=row["model"], precision=row["precision"], batch=int(row["batch"]),
                seq=int(row["seq"] or 0) or None, accumulate=int(row["accumulate"]), optimizer="adamw",
            )
        )  # fmt: skip
        live.append(100 * abs(estimator.memory().live_peak_bytes / int(row["live_bytes"]) - 1))
        taken = step_of(estimator, estimator.scene(), host=OWN).seconds(PEAKS_H200)
        seconds.append(100 * abs(taken / float(row["seconds"]) - 1))
        worst.append((live[-1], f"{row['model']} {row['precision']} x{row['accumulate']}"))
    return Section(
        title="judge_configs: training steps of models by config",
        figures=(
            Figure(what="live peak, median error", unit="%", samples=(median(live),), bar=2),
            Figure(what="live peak, largest error", unit="%", samples=(max(live),), bar=2),
            Figure(what="step time, median error", unit="%", samples=(median(seconds),), bar=10),
        ),
        notes=(
            f"{len(rows)} rows, on an undisturbed host",
            "largest: " + ", ".join(f"{name} {off:.1f} %" for off, name in sorted(worst, reverse=True)[:3]),
        ),
    )


def _serving(rows: list[dict[str, str]]) -> Section:
    tokens, prompts, gpu = [], [], card(MEASURED_ID)
    for row in rows:
        if row["model"] in FITTED:
            continue
        load = Load(users=int(row["users"]), context=int(row["context"]))
        found = serve(Workload(model=row["model"], batch=1, precision="bf16"), load, [gpu]).gpus[0]
        assert found.token_seconds is not None
        tokens.append(100 * abs(found.token_seconds.p50 * 1e3 / float(row["token_ms"]) - 1))
        if row["prefill_ms"] and found.first_token_seconds is not None:
            prompts.append(100 * abs(found.first_token_seconds.p50 * 1e3 / float(row["prefill_ms"]) - 1))
    return Section(
        title="serve: decoding of models that were not fitted on",
        figures=(
            Figure(what="time per token, median error", unit="%", samples=(median(tokens),), bar=12),
            Figure(what="time per token, largest error", unit="%", samples=(max(tokens),)),
            Figure(what="time to first token, median error", unit="%", samples=(median(prompts),)),
        ),
        notes=(f"{len(tokens)} loads, {len(prompts)} prefills",),
    )
