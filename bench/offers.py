"""Measure how fast offers are imported and searched: cold, as a command; warm, in a process; and compared with gpuhunt.

Commands run as a user runs them, with compiled bytecode. Each round also runs the baselines, so that all figures are
measured under the same load.
"""

import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any, Final

from bench.cloud_api import load, serving
from bench.figures import Figure, Section, Unit, milliseconds
from bench.gpuhunt import compared_with_gpuhunt
from bench.processes import ROOT, TERA, Fault, Run, at_home, run, run_task

CATALOG: Final = ROOT.parent / "shared" / "data" / "skypilot-catalog"
"""A real catalog, if available: 112,000 rows of 25 clouds."""

CATALOG_ROWS: Final = 112_000
SOME_OFFERS: Final = 100_000
MANY_OFFERS: Final = 1_000_000
COLD_ROUNDS: Final = 15
COLD_WARM_UPS: Final = 3
IMPORT_ROUNDS: Final = 3
HTTP_ROUNDS: Final = 3
DEAREST_SHOWN: Final = 6

SHOWN: Final = 50  # the default limit of `tera offers`
QUESTION: Final = ("offers", "--gpu", "A100", "--json")
LIBRARIES: Final = "import click, sqlite3, msgspec"
MB: Final = 1_000_000

TASKS: Final = "bench.offer_tasks"


def measure() -> Iterator[Section]:
    run([sys.executable, "-m", "compileall", "-q", ROOT / "src", ROOT / "bench"])
    with TemporaryDirectory(prefix="tera-bench-") as folder:
        yield from _catalog(Path(folder) / "catalog")
        yield from _many(Path(folder) / "many")
        yield compared_with_gpuhunt(Path(folder) / "gpuhunt")


# --- a real catalog: import and cold query --------------------------------------------------------------------------


def _catalog(home: Path) -> Iterator[Section]:
    if CATALOG.is_dir():
        yield _import(home)
        title = f"`tera {' '.join(QUESTION)}`, cold, the catalog imported"
    else:
        run_task(TASKS, "fill", str(CATALOG_ROWS), env=at_home(home))
        yield Section(
            title="import of the catalog", notes=(f"not measured: {CATALOG.name} is not available",)
        )
        title = f"`tera {' '.join(QUESTION)}`, cold, {CATALOG_ROWS:,} generated offers"
    runs, passing, loading = _cold(home)
    traced = [_import_ms(run([TERA, *QUESTION], env={**at_home(home), "PYTHONPROFILEIMPORTTIME": "1"}))
              for _ in range(COLD_ROUNDS)]  # fmt: skip
    yield Section(
        title=title,
        figures=(
            Figure(what="wall", unit="ms", samples=_wall(runs), bar=150),
            Figure(what="Python imports", unit="ms", samples=tuple(sum(each.values()) for each in traced), bar=80),
            Figure(what="processor time", unit="ms", samples=_cpu(runs)),
            Figure(what="peak memory", unit="MB", samples=_peak(runs)),
            Figure(what="baseline: `python -c pass`", unit="ms", samples=_wall(passing)),
            Figure(what=f"baseline: `python -c '{LIBRARIES}'`", unit="ms", samples=_wall(loading)),
        ),
        notes=(
            "Imports are measured with `-X importtime` in separate runs and include the start of Python.",
            f"Slowest modules, without those they import: {_slowest(traced)}",
        ),
    )  # fmt: skip


def _import(home: Path) -> Section:
    runs = []
    for number in range(IMPORT_ROUNDS):
        fresh = at_home(home if number == 0 else home.with_name(f"{home.name}-{number}"))
        run([TERA, "offers", "sources"], env=fresh)  # creates the database with the shipped offers
        runs.append(run([TERA, "offers", "import", "skypilot", CATALOG, "--json"], env=fresh))
    again = run([TERA, "offers", "import", "skypilot", CATALOG, "--json"], env=at_home(home))
    report = json.loads(runs[0].stdout)
    rows = report["rows_read"]
    return Section(
        title=f"`tera offers import skypilot`, {rows:,} rows, {report['offers_taken']:,} offers imported",
        figures=(
            Figure(what="wall", unit="s", samples=_wall(runs, "s"), bar=5),
            Figure(what="processor time", unit="s", samples=_cpu(runs, "s")),
            Figure(what="rows read", unit="rows/s", samples=tuple(rows / each.wall_seconds for each in runs)),
            Figure(what="peak memory", unit="MB", samples=_peak(runs)),
            Figure(what="the same import again, nothing changed", unit="s", samples=_wall([again], "s")),
        ),
    )


# --- a million offers -----------------------------------------------------------------------------------------------


def _many(home: Path) -> Iterator[Section]:
    filled = run_task(TASKS, "fill", str(MANY_OFFERS), env=at_home(home))
    writing = filled["write_seconds"] + filled["close_seconds"]
    runs, _, _ = _cold(home)
    yield Section(
        title=f"`tera {' '.join(QUESTION)}`, cold, {MANY_OFFERS:,} generated offers",
        figures=(
            Figure(what="wall", unit="ms", samples=_wall(runs), bar=200),
            Figure(what="processor time", unit="ms", samples=_cpu(runs)),
            Figure(what="peak memory", unit="MB", samples=_peak(runs), bar=150),
            Figure(what="writing them, in one transaction", unit="s", samples=(writing,)),
            Figure(what="generating them", unit="s", samples=(filled["making_seconds"],)),
            Figure(what="size of the file", unit="MB", samples=(filled["file_bytes"] / MB,)),
        ),
    )
    yield _warm(run_task(TASKS, "warm", env=at_home(home)))
    fewer = at_home(home.with_name("fewer"))
    run_task(TASKS, "fill", str(SOME_OFFERS), env=fewer)
    yield _warm(run_task(TASKS, "warm", env=fewer))
    yield _over_http(home.with_name("fewer"))


ASKED: Final = {
    "a100": "--gpu A100",
    "a100_filtered": "… --count 4+ --ram-min 256 --region us- --mode on-demand",
    "a100_price_max": "… --price-max 10",
    "a100_per_gpu": "… --sort price-per-gpu",
    "unfiltered": "all offers",
}


def _warm(figures: dict[str, Any]) -> Section:
    asked = (
        Figure(
            what=f"{ASKED[name]}: {each['matched']:,} fit",
            unit="ms",
            samples=milliseconds(each["seconds"]),
            bar=2 if name == "a100" else None,
        )
        for name, each in figures["questions"].items()
    )
    served = (
        Figure(what=f"`GET /v1/offers`: {ASKED[name]}", unit="ms", samples=milliseconds(seconds), bar=2)
        for name, seconds in figures["served"].items()
    )
    return Section(
        title=f"the same in a running process, {figures['offers']:,} offers in the index",
        figures=(
            *asked,
            *served,
            Figure(what="peak memory of the process", unit="MB", samples=(figures["peak_bytes"] / MB,), bar=150),
            Figure(what="memory when built", unit="MB", samples=(figures["resident_bytes"] / MB,)),
            Figure(what="memory before, without numpy", unit="MB", samples=(figures["empty_bytes"] / MB,)),
            Figure(what="building the index from the file", unit="s", samples=(figures["build_seconds"],)),
        ),
        notes=(
            "Each query returns the first 50 offers. The results equal those of SQL.",
            "`GET /v1/offers` is measured from the parsed query to the JSON, including the check for new offers.",
        ),
    )  # fmt: skip


REQUESTED: Final = (
    "gpu=V100&limit=5",
    "gpu=V100",
    "gpu=A100&region=us&limit=5",
    "gpu=A100&mode=spot&limit=5",
    "gpu=A100&provider=aws&provider=gcp&limit=5",
    "gpu=A100&count=4%2B&ram_min=256&region=us&mode=on-demand",
    "gpu=A100&sort=price-per-gpu&limit=5",
    "gpu=A100&sort=price-per-tflops&limit=5",
    "limit=50",
)


def _over_http(home: Path) -> Section:
    """Send queries to a server, and measure its processor time for each: reading, authorizing, searching, writing."""
    figures = []
    with serving(home) as (process, server):
        key = (home / "cloud" / "operator.key").read_text().strip()
        load(process.pid, server, "/v1/offers?limit=1", key)  # the index is built meanwhile
        for query in REQUESTED:
            rates = [load(process.pid, server, f"/v1/offers?{query}", key) for _ in range(HTTP_ROUNDS)]
            seconds = tuple(1 / per_core for _, per_core in rates)
            figures.append(
                Figure(what=f"`GET /v1/offers?{query}`", unit="ms", samples=milliseconds(seconds), bar=2)
            )
    return Section(
        title=f"the same over HTTP, {SOME_OFFERS:,} generated offers",
        figures=tuple(figures),
        notes=(
            "Processor time of the server for a request. 8 connections send one request after the other.",
        ),
    )


# --- commands and their figures -------------------------------------------------------------------------------------


def _cold(home: Path) -> tuple[list[Run], list[Run], list[Run]]:
    """Run the query as a command and, in the same rounds, Python and the libraries alone."""
    commands: tuple[list[str | Path], ...] = (
        [TERA, *QUESTION],
        [sys.executable, "-c", "pass"],
        [sys.executable, "-c", LIBRARIES],
    )
    for number in range(COLD_WARM_UPS):
        answer, *_ = [run(command, env=at_home(home)) for command in commands]
        if number == 0:
            _check_answer(json.loads(answer.stdout))
    rounds = [[run(command, env=at_home(home)) for command in commands] for _ in range(COLD_ROUNDS)]
    ours, passing, loading = (list(runs) for runs in zip(*rounds, strict=True))
    return ours, passing, loading


def _check_answer(offers: list[dict[str, Any]]) -> None:
    if len(offers) != SHOWN or not all(each["gpu"].startswith("A100") for each in offers):
        raise Fault(f"`tera {' '.join(QUESTION)}` wrote {len(offers)} offers instead of {SHOWN} with an A100")


def _import_ms(traced: Run) -> dict[str, float]:
    """Return the import time of each module, without the modules that it imports."""
    lines = (line for line in traced.stderr.splitlines() if line.startswith("import time:"))
    cells = [line.removeprefix("import time:").split("|") for line in lines]
    return {name.strip(): int(own) / 1000 for own, _, name in cells if own.strip().isdigit()}


def _slowest(traced: Sequence[dict[str, float]]) -> str:
    names = set().union(*traced)
    typical = {name: median(each.get(name, 0.0) for each in traced) for name in names}
    first = sorted(typical, key=lambda name: -typical[name])[:DEAREST_SHOWN]
    return ", ".join(f"{name} {typical[name]:.1f} ms" for name in first)


def _wall(runs: Sequence[Run], unit: Unit = "ms") -> tuple[float, ...]:
    return tuple(each.wall_seconds * (1000 if unit == "ms" else 1) for each in runs)


def _cpu(runs: Sequence[Run], unit: Unit = "ms") -> tuple[float, ...]:
    return tuple(each.cpu_seconds * (1000 if unit == "ms" else 1) for each in runs)


def _peak(runs: Sequence[Run]) -> tuple[float, ...]:
    return tuple(each.peak_bytes / MB for each in runs)
