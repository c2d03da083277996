"""`python -m bench [NAME …] [--json FILE]`: run all benchmarks, or some by name, and print the figures.

A missed target is shown but is not an error. The exit code is 1 only if a benchmark cannot run because of a bug. To add
a benchmark, write a module with a `measure` function that yields sections, and list it in `BENCHMARKS`.
"""

import argparse
import json
import os
import platform
import sqlite3
import sys
import traceback
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, Final

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
    "clouds": "bench.clouds",
    "fleet": "bench.fleet",
    "fleet_lives": "bench.fleet_lives",
    "launches": "bench.launches",
    "placement": "bench.placement",
    "run_start": "bench.run_start",
    "run_simulation": "bench.run_simulation",
    "spot": "bench.spot",
    "walls": "bench.walls",
    "walls_launch": "bench.walls_launch",
    "walls_hosts": "bench.walls_hosts",
    "telemetry": "bench.telemetry",
    "telemetry_hosts": "bench.telemetry_hosts",
    "console": "bench.console",
}
BUSY_LOAD: Final = 1.5  # a benchmark itself causes a load of about one


def main() -> int:
    if sys.argv[1:2] == ["spot"] and sys.argv[2:]:
        return int(
            import_module(BENCHMARKS["spot"]).main(sys.argv[2:])
        )  # for other traces; it has its own options
    parser = argparse.ArgumentParser(
        prog="python -m bench", description="Run benchmarks and print their figures."
    )
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"one of {', '.join(BENCHMARKS)}  [default: all]"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures to FILE")
    parser.add_argument("--nodes", type=Path, metavar="FILE", help="placement: the nodes, as CSV")
    parser.add_argument("--pods", type=Path, metavar="FILE", help="placement: the pods, as CSV")
    parser.add_argument(
        "--seeds", type=_seeds, metavar="A..B", help="fleet_lives: the first and the last seed"
    )
    asked = parser.parse_args()
    options = {
        "placement": {"nodes": asked.nodes, "pods": asked.pods},
        "fleet_lives": {"seeds": asked.seeds},
    }
    if unknown := [name for name in asked.names if name not in BENCHMARKS]:
        parser.error(f"unknown benchmark: {', '.join(unknown)} (use one of {', '.join(BENCHMARKS)})")
    facts = machine()
    print("\n".join(f"{name:9}{fact}" for name, fact in facts.items()))
    measured = {name: _measured(name, options.get(name, {})) for name in asked.names or BENCHMARKS}
    print(f"\nload     {load()} (at the end)")
    if os.getloadavg()[0] > BUSY_LOAD:
        print("         The machine was busy: the minima are closer to those of an idle machine")
    if asked.json:
        benchmarks = {name: plain(sections) for name, (sections, _) in measured.items()}
        text = json.dumps({"machine": facts, "benchmarks": benchmarks}, indent=2, ensure_ascii=False)
        asked.json.write_text(f"{text}\n", encoding="utf-8")
    return int(any(failed for _, failed in measured.values()))


def _seeds(text: str) -> range:
    first, _, last = text.partition("..")
    return range(int(first), int(last or first) + 1)


def _measured(name: str, options: Mapping[str, Any]) -> tuple[list[Section], bool]:
    """Run one benchmark and print its sections. Return the sections so far and whether it failed."""
    sections: list[Section] = []
    fault: Exception | None = None
    try:
        for section in import_module(BENCHMARKS[name]).measure(**options):
            print(f"measured: {section.title}", file=sys.stderr)
            sections.append(section)
    except Exception as error:  # for any error: show the figures so far and continue with the next benchmark
        fault = error
    print(f"\n{name}\n{render(sections)}")
    if fault:
        words = str(fault) if isinstance(fault, Fault) else "".join(traceback.format_exception(fault))
        print(f"\n`{name}` failed: {words}", file=sys.stderr)
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
