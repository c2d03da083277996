"""Measure the second start of a run until its first line of output, beside a launch until SSH answers.

Both as users type them, in turns, on one engine. The first run makes the image of its setup; the measured ones use it.
"""

import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter
from typing import Final

from tests.engine.conftest import IMAGES
from tests.engine.sandbox import NoSandbox, Sandbox
from tests.story.real_cloud import RealCloud

from bench.figures import Figure, Section
from bench.processes import Fault
from teraflock.drivers.lxd import build
from teraflock.image import recipe

TITLE: Final = "Second start of a run"
TURNS: Final = 5
SIZE: Final = ("--vcpus", "1", "--ram", "512MB", "--disk", "2")
SETUP: Final = ("--setup", "dd if=/dev/urandom of=/opt/tool bs=1M count=20 status=none")


def measure() -> Iterator[Section]:
    try:
        build.build(recipe.read("base"), IMAGES, created_at=1)
        sandbox = Sandbox("bench-run-")
    except (NoSandbox, build.BuildFailed) as reason:
        yield Section(title=TITLE, notes=(f"skipped: {reason}",))
        return
    with tempfile.TemporaryDirectory() as folder:
        cloud = RealCloud(Path(folder) / "home", sandbox)
        try:
            cloud.ok("up")
            yield _measured(cloud)
        finally:
            cloud.run("purge", "--yes")
            sandbox.close()


def _measured(cloud: RealCloud) -> Section:
    first = _first_line(cloud)
    launches, runs = [], []
    for turn in range(TURNS):
        launches.append(_launch(cloud, f"box-{turn}"))
        runs.append(_first_line(cloud))
    ratios = tuple(run / launch for run, launch in zip(runs, launches, strict=True))
    figures = (
        Figure(what="launch to ssh", unit="s", samples=tuple(launches)),
        Figure(what="second run to its first line", unit="s", samples=tuple(runs)),
        Figure(what="second run beside launch", unit="×", samples=ratios, bar=1.5),
        Figure(what="first run, with its setup", unit="s", samples=(first,)),
    )
    return Section(title=TITLE, figures=figures)


def _launch(cloud: RealCloud, name: str) -> float:
    began = perf_counter()
    cloud.ok("launch", "--name", name, "--wait", *SIZE)
    cloud.ok("ssh", name, "--", "true")
    took = perf_counter() - began
    cloud.ok("delete", name, "--yes")
    return took


def _first_line(cloud: RealCloud) -> float:
    began = perf_counter()
    words = cloud.command("run", "--yes", *SETUP, *SIZE, "--", "echo", "hello")
    with subprocess.Popen(
        words, env=cloud.environment(100), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as run:
        assert run.stdout is not None
        line = run.stdout.readline()
        took = perf_counter() - began
        run.stdout.read()
    if line != b"hello\n" or run.returncode:
        raise Fault(f"the run printed {line!r} and ended with {run.returncode}")
    return took
