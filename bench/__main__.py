"""`python -m bench [NAME …] [--json FILE]`: run the benchmarks, all or those named, and print what was measured.

A bar that is missed is told and fails nothing. Only a benchmark that cannot run at all, for a fault of ours, ends
with 1. To add a benchmark, write a module with a `measure` that yields sections, and name it in `BENCHMARKS`.
"""

import argparse
import json
import os
import platform
import sqlite3
import sys
import traceback
from importlib import import_module
from pathlib import Path
from typing import Final

from bench.figures import Section, plain, render
from bench.processes import Fault

BENCHMARKS: Final = {
    "offers": "bench.offers",
    "estimate": "bench.estimate",
    "plan": "bench.plan",
    "bill": "bench.bill",
    "simulation": "bench.simulation",
    "bill_launch": "bench.bill_launch",
    "cloud_api": "bench.cloud_api",
    "cloud_lxd": "bench.cloud_lxd",
    "cloud_scale": "bench.cloud_scale",
    "launches": "bench.launches",
}
BUSY_LOAD: Final = 1.5  # a benchmark runs one thing at a time, and makes a load of one by itself


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m bench", description="Measure, and print what was measured."
    )
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"of {', '.join(BENCHMARKS)}; all if none is named"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there too")
    asked = parser.parse_args()
    if unknown := [name for name in asked.names if name not in BENCHMARKS]:
        parser.error(f"no such benchmark: {', '.join(unknown)} (there is {', '.join(BENCHMARKS)})")
    facts = machine()
    print("\n".join(f"{name:9}{fact}" for name, fact in facts.items()))
    measured = {name: _measured(name) for name in asked.names or BENCHMARKS}
    print(f"\nload     {load()} (at the end)")
    if os.getloadavg()[0] > BUSY_LOAD:
        print("         Others were at work: the minima are nearer to what an idle machine shows")
    if asked.json:
        benchmarks = {name: plain(sections) for name, (sections, _) in measured.items()}
        text = json.dumps({"machine": facts, "benchmarks": benchmarks}, indent=2, ensure_ascii=False)
        asked.json.write_text(f"{text}\n", encoding="utf-8")
    return int(any(failed for _, failed in measured.values()))


def _measured(name: str) -> tuple[list[Section], bool]:
    """The sections of one benchmark, printed, and whether it broke off: what it had by then still counts."""
    sections: list[Section] = []
    fault: Exception | None = None
    try:
        for section in import_module(BENCHMARKS[name]).measure():
            print(f"measured: {section.title}", file=sys.stderr)
            sections.append(section)
    except (
        Exception
    ) as error:  # whatever it was: the figures so far are shown, and the next benchmark has its turn
        fault = error
    print(f"\n{name}\n{render(sections)}")
    if fault:
        words = str(fault) if isinstance(fault, Fault) else "".join(traceback.format_exception(fault))
        print(f"\n`{name}` broke off: {words}", file=sys.stderr)
    return sections, fault is not None


def machine() -> dict[str, str]:
    return {
        "machine": f"{_processor()}, {len(os.sched_getaffinity(0))} cores, {platform.system()} {platform.release()}",
        "python": f"{platform.python_version()}, SQLite {sqlite3.sqlite_version}",
        "load": f"{load()} (at the start: minutes 1, 5, 15; an idle machine has 0)",
    }


def load() -> str:
    return " ".join(f"{value:.2f}" for value in os.getloadavg())


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


if __name__ == "__main__":
    sys.exit(main())
