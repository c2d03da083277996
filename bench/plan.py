"""Measure what choosing by total cost saves compared with choosing by price per hour, and how fast a plan is.

For each workload, compares the cost of our first choice with that of the cheapest offer per hour on which the job fits,
which is what other tools choose. Both use the same offers, estimates and billing.
"""

import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from bench.figures import Figure, Section
from bench.offers import CATALOG
from bench.processes import TERA, Run, at_home, run
from teraflock.app.local import Local
from teraflock.base.clock import today
from teraflock.offer.model import Mode, Shape
from teraflock.offer.rules import in_currency
from teraflock.offer.shape import store as shape_store
from teraflock.plan.assumptions import shipped_assumptions
from teraflock.plan.check import faults
from teraflock.plan.job import Job
from teraflock.plan.model import Choice, Wish
from teraflock.plan.rules import choose
from teraflock.workload.model import Workload
from teraflock.workload.zoo import entry

IMAGES = 90 * 1_281_167.0  # 90 epochs of ImageNet
TOKENS_STEPS = 50_000.0
RUNS = 15

COLD = (
    "plan resnet50 --batch 128 --epochs 90 --samples 1281167 --json",
    "plan gpt2-large --batch 4 --precision amp-bf16 --steps 50000 --json",
    "plan --hours 100 --json",
    "plan --hours-per-month 5 --disk 50 --region EU --newer-than 1y --json",
)

VISION = (
    "alexnet", "vgg11", "vgg16", "vgg19", "resnet18", "resnet50", "resnet152", "resnext50_32x4d", "wide_resnet50_2",
    "densenet121", "inception_v3", "googlenet", "mobilenet_v2", "mobilenet_v3_large", "efficientnet_b0",
    "convnext_tiny", "vit_b_16", "swin_t",
)  # fmt: skip
TEXT = (
    "bert-base", "bert-large", "roberta-base", "distilbert", "gpt2", "gpt2-medium", "gpt2-large", "t5-base", "opt-1.3b",
    "qwen2-0.5b", "llama-1b", "llama-3b",
)  # fmt: skip


def jobs() -> Iterator[tuple[str, Job]]:
    for name in VISION:
        yield name, Job(Workload(model=name, batch=128, optimizer="sgd"), steps=None, samples=IMAGES)
    for name in TEXT:
        assert entry(name).kind == "text"
        workload = Workload(model=name, batch=4, seq=512, precision="amp-bf16", optimizer="adamw")
        yield name, Job(workload, steps=TOKENS_STEPS, samples=None)


def measure() -> Iterator[Section]:
    with tempfile.TemporaryDirectory() as home:
        there = at_home(Path(home))
        if CATALOG.is_dir():
            run([TERA, "offers", "import", "skypilot", CATALOG, "--as-of", "2026-08-22", "--json"], env=there)
        # Runs first, while this process is small: the reported peak of a child is at least that of its parent.
        cold = {words: [run([TERA, *words.split()], env=there) for _ in range(RUNS)] for words in COLD}
        os.environ.update(there)
        with Local() as local:
            with local.database(to_write=True).read() as tx:
                shapes = shape_store.shapes(tx)
            yield _speed(shapes, local, cold)
            yield _savings(shapes, local, ("on-demand",), listed=True)
            yield _savings(shapes, local, (), listed=False)
        for name in there:
            del os.environ[name]


def _savings(shapes: list[Shape], local: Local, modes: tuple[Mode, ...], *, listed: bool) -> Section:
    """Compare the costs in these purchase modes, on one or several GPUs. `listed` adds a note for every workload."""
    on = today(local.clock)
    wish = Wish(use="job", modes=modes)
    saved, notes = [], []
    for name, job in jobs():
        plan = choose(shapes, wish, job, shipped_assumptions(), local.rates, on, top=1)
        if not plan.choices:
            notes.append(f"{name}: fits on no offer")
            continue
        best = plan.choices[0]
        hourly = min(plan.choices, key=lambda choice: _usd_per_month(choice, local))
        saving = 100 * (1 - best.cost.expected_micros / hourly.cost.expected_micros)
        saved.append(saving)
        notes.append(f"{name:<20} {_text(best)} instead of {_text(hourly)}: {saving:5.1f} % saved")
    figure = Figure(what="saved compared with the cheapest hour, median", unit="%", samples=tuple(saved))
    mean = Figure(what="saved, mean", unit="%", samples=(sum(saved) / len(saved),))
    most = Figure(what="saved, maximum", unit="%", samples=(max(saved),))
    title = f"cost to finish, {len(saved)} workloads, {' or '.join(modes) or 'all modes, spot with interruptions'}"
    return Section(title=title, figures=(figure, mean, most), notes=tuple(notes) if listed else ())


def _usd_per_month(choice: Choice, local: Local) -> int:
    shape = choice.shape
    price = shape.price_micros_per_month or 0
    return in_currency(price, shape.currency, "USD", local.rates, today(local.clock))


def _text(choice: Choice) -> str:
    shape = choice.shape
    words = f"{shape.gpu_count}× {shape.gpu} {shape.mode} at {shape.provider}"
    return f"{words:<44} {choice.cost.expected_micros / 1e6:9.2f} USD {choice.hours.p50:8.1f} h"


def _speed(shapes: list[Shape], local: Local, cold: dict[str, list[Run]]) -> Section:
    on, wish, assumptions = today(local.clock), Wish(use="job"), shipped_assumptions()
    job = next(job for name, job in jobs() if name == "resnet50")
    warm = []
    for _ in range(RUNS + 1):
        began = time.perf_counter()
        plan = choose(shapes, wish, job, assumptions, local.rates, on, top=10)
        assert not list(faults(plan, shapes, wish, job, assumptions, local.rates, on))
        warm.append(1000 * (time.perf_counter() - began))
    times = [
        Figure(
            what=f"cold, CPU time of `tera {words}`",
            unit="ms",
            samples=tuple(1000 * each.cpu_seconds for each in runs),
            bar=300,
        )
        for words, runs in cold.items()
    ]
    peaks = tuple(each.peak_bytes / 1e6 for runs in cold.values() for each in runs)
    return Section(
        title=f"`tera plan`, {sum(shape.offers for shape in shapes):,} offers with a GPU in {len(shapes):,} shapes",
        figures=(
            *times,
            Figure(what="warm, chosen and checked, resnet50", unit="ms", samples=tuple(warm[1:]), bar=30),
            Figure(what="peak memory, cold", unit="MB", samples=peaks, bar=200),
        ),
    )
