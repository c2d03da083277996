"""Measure the policy for deadlines on recorded spot availability, beside known policies and the optimum.

    python -m bench spot --traces FOLDER --job 48 --deadline 52 60 72 --changeover 0.05 0.2 0.5 --k 3.145 [--multi]

A trace is a JSON file with `metadata.gap_seconds` and `data`: for each tick the number of machines that were available.
Runs start every six hours. The policy learns from the first half of each series, and runs start in the second half.
Where the second half is shorter than the deadline, runs start at the beginning and know only the shipped prior. With
`--multi` all files of a folder are zones of one run, which learns every day from everything before that day.
"""

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import fmean
from typing import Final

from bench.figures import Figure, Section, plain, render
from bench.processes import ROOT, Fault
from bench.spot_runs import Score, Setting, Trace, Zones, groups, read, scores
from bench.spot_zones import write_zones
from teraflock.base.errors import TeraflockError
from teraflock.run.learn import pooled

TRACES: Final = ROOT.parent / "shared" / "data" / "spot"
NUMBER_MAX: Final = 10_000  # hours, or a ratio, or a count
BARS: Final = {False: 68.5, True: 33.0}  # % of on-demand: one zone at a time, all zones of a folder


def main(words: Sequence[str]) -> int:
    """Run with options, for any traces."""
    asked = _parser().parse_args(words)
    try:
        if asked.make is not None:
            write_zones(asked.traces, asked.make)
            return 0
        traces = read(asked.traces, asked.nodes)
        if asked.fit:
            print(_fitted(traces))
            return 0
        sections = []
        for section in _sections(traces, asked):
            print(f"measured: {section.title}", file=sys.stderr)
            sections.append(section)
    except (Fault, TeraflockError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(render(sections))
    if asked.json:
        asked.json.write_text(f"{json.dumps(plain(sections), indent=2)}\n", encoding="utf-8")
    return 0


def measure() -> Iterator[Section]:
    """For `make bench`: one zone at a time, then all zones of the folder together."""
    if not TRACES.is_dir():
        yield Section(title="deadlines on spot", notes=(f"not measured: {TRACES.name} is not available",))
        return
    for words in ("--deadline 52 60 72 --changeover 0.05 0.2 0.5", "--deadline 52 --changeover 0.2 --multi"):
        asked = _parser().parse_args(["--traces", str(TRACES), *words.split()])
        yield from _sections(read(asked.traces, asked.nodes), asked)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bench spot",
        description="Replay the policy for deadlines on recorded spot availability.",
    )
    add = parser.add_argument
    add(
        "--traces",
        type=Path,
        required=True,
        metavar="FOLDER",
        help="folder with JSON files; 0 means unavailable",
    )
    add("--job", type=_hours, default=48.0, metavar="HOURS", help="work of the job  [default: 48]")
    add("--deadline", type=_hours, nargs="+", default=[52.0], metavar="HOURS", help="[default: 52]")
    add("--changeover", type=_changeover, nargs="+", default=[0.2], metavar="HOURS", help="[default: 0.2]")
    add("--k", type=_hours, default=3.145, help="price of on-demand over spot  [default: 3.145]")
    add("--multi", action="store_true", help="one run may use all files of a folder as its zones")
    add("--nodes", type=_count, default=1, metavar="N", help="a gang of N machines in one zone  [default: 1]")
    add(
        "--no-history",
        action="store_true",
        help="learn nothing: start at the beginning with the shipped prior",
    )
    add("--every", type=_hours, default=6.0, metavar="HOURS", help="start a run every HOURS  [default: 6]")
    add(
        "--optimum-every",
        type=_count,
        default=1,
        metavar="N",
        help="compute the optimum for every Nth run only",
    )
    add("--fit", action="store_true", help="print the rates in the first halves of all traces, and stop")
    add("--make", type=int, metavar="SEED", help="write nine synthetic zones to FOLDER, and stop")
    add("--json", type=Path, metavar="FILE", help="also write the figures to FILE")
    return parser


def _hours(text: str) -> float:
    value = float(text)
    if not 0 < value <= NUMBER_MAX:
        raise argparse.ArgumentTypeError(f"`{text}` must be more than 0 and at most {NUMBER_MAX}")
    return value


def _changeover(text: str) -> float:
    return 0.0 if float(text) == 0 else _hours(text)


def _count(text: str) -> int:
    return int(_hours(str(int(text))))


def _sections(folders: dict[Path, list[Trace]], asked: argparse.Namespace) -> Iterator[Section]:
    means: list[dict[str, float]] = []
    late = 0
    for deadline in asked.deadline:
        for changeover in asked.changeover:
            setting = Setting(
                work_hours=asked.job, deadline_hours=deadline, changeover_hours=changeover, k=asked.k,
                every_hours=asked.every, optimum_every=asked.optimum_every, history=not asked.no_history,
            )  # fmt: skip
            zones = groups(folders, setting, multi=asked.multi)
            found = scores(zones, setting)
            means.append({name: score.percent for name, score in found.items()})
            late += found["ours"].late
            bar = BARS[True] if asked.multi else None
            yield _section(found, setting, means[-1], bar, _left_out(folders, zones))
    if len(means) > 1:
        mean = {name: fmean(each[name] for each in means) for name in means[0]}
        title = f"mean of {len(means)} settings: {late} runs of ours late"
        yield Section(title=title, figures=_figures(mean, BARS[asked.multi]))


def _section(
    found: dict[str, Score],
    setting: Setting,
    means: dict[str, float],
    bar: float | None,
    notes: Sequence[str],
) -> Section:
    title = (
        f"{setting.work_hours:g} h of work, deadline {setting.deadline_hours:g} h, changeover"
        f" {setting.changeover_hours:g} h, K {setting.k:g}: {found['ours'].runs} runs"
    )
    late = ", ".join(
        f"{name} {score.late}" for name, score in found.items() if not name.startswith("optimum")
    )
    return Section(title=title, figures=_figures(means, bar), notes=(f"late: {late}", *notes))


def _left_out(folders: dict[Path, list[Trace]], used: Sequence[Zones]) -> list[str]:
    every, long = sum(map(len, folders.values())), sum(len(zones.traces) for zones in used)
    return (
        [f"{every - long} of {every} traces are shorter than the deadline: left out"] if long < every else []
    )


def _figures(means: dict[str, float], bar: float | None) -> tuple[Figure, ...]:
    return tuple(
        Figure(
            what=f"mean cost over on-demand, {name}",
            unit="%",
            samples=(percent,),
            bar=bar if name == "ours" else None,
        )
        for name, percent in means.items()
    )


def _fitted(folders: dict[Path, list[Trace]]) -> str:
    """Return the pooled rates of the first halves, as they are in `run/survival.py`."""
    traces = [trace for found in folders.values() for trace in found]
    if len({trace.tick_hours for trace in traces}) > 1:
        raise Fault("The traces have different `gap_seconds`")
    down, up = pooled([trace.up[: len(trace.up) // 2] for trace in traces], traces[0].tick_hours)
    lines = (("PRIOR_UP", up), ("PRIOR_DOWN", down))
    return "\n".join(f"{name} = ({', '.join(f'{rate:.2f}' for rate in each.rates)})" for name, each in lines)
