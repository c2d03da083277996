"""Measure what security groups cost a launch: until SSH answers, with them and without, in turns on one engine.

Without them, their table does not exist and nothing is loaded or cut. All other tables are the same.
"""

import logging
import tempfile
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Final

from tests.engine.sandbox import NoSandbox, Sandbox, mark_cgroups

from bench import cloud_lxd
from bench.figures import Figure, Section
from bench.walls import spread
from teraflock.drivers.lxd import build
from teraflock.drivers.lxd.enforcing import Enforcing
from teraflock.image import recipe
from teraflock.network.walls import Walls

TURNS: Final = 20
BAR: Final = 1.05


class NoWalls(Enforcing):
    """In place of the security groups: does nothing, and all is well."""

    def keep(self, bridges: Iterable[str]) -> bool:
        return True

    def is_intact(self) -> bool:
        return True

    def load(self, wanted: Walls) -> None: ...

    def cut(self, own: Collection[str]) -> int:
        return 0


def measure() -> Iterator[Section]:
    title = "launch until SSH answers, with and without security groups"
    try:
        build.build(recipe.read("base"), cloud_lxd.IMAGES, created_at=1)
        host = Sandbox("bench-")
    except (NoSandbox, build.BuildFailed) as reason:
        yield Section(title=title, notes=(f"not measured: {reason}",))
        return
    mark_cgroups(host.folder, f"tera-{cloud_lxd.INSTALLATION}")
    logging.getLogger("teraflock").setLevel(logging.ERROR)
    try:
        with host.inside(), tempfile.TemporaryDirectory() as folder:
            bench = cloud_lxd.OnLxd(host, Path(folder))
            try:
                yield in_turns(bench, title)
            finally:
                bench.close()
    finally:
        host.close()


def in_turns(bench: cloud_lxd.OnLxd, title: str) -> Section:
    networks = bench.driver.networks
    there = networks._walls
    taken: dict[str, list[float]] = {"with": [], "without": []}
    for turn in range(-1, TURNS):  # the first pair is a warm-up
        for name in ("with", "without") if turn % 2 else ("without", "with"):
            if name == "without":
                there.drop()
            networks._walls = there if name == "with" else NoWalls(networks._ours.walls_table)
            networks.rebuild()
            seconds = bench.launched(1)
            if turn >= 0:
                taken[name].append(seconds)
    networks._walls = there
    ratios = tuple(one / other for one, other in zip(taken["with"], taken["without"], strict=True))
    return Section(
        title=title,
        figures=(
            Figure(what="with", unit="s", samples=tuple(taken["with"])),
            Figure(what="without", unit="s", samples=tuple(taken["without"])),
            Figure(what="with ÷ without", unit="×", samples=ratios, bar=BAR),
        ),
        notes=(f"ratio: {spread(ratios)}; of the medians: {_of_medians(taken)}",),
    )


def _of_medians(taken: dict[str, list[float]]) -> str:
    one, other = (sorted(taken[name])[len(taken[name]) // 2] for name in ("with", "without"))
    return f"{one / other:.3f}"
