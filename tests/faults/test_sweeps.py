"""Sweeps on simulated hosts: all runs or none, and one budget over all."""

from typing import Any

import pytest
from tests.faults.run_installation import RunInstallation

from teraflock.base.errors import BadInput, Conflict, QuotaReached
from teraflock.instance.orders import ShapeWish
from teraflock.run.model import Run, RunSpec
from teraflock.run.rules import is_over
from teraflock.run.states import RunPhase


def swept(
    installation: RunInstallation, grid: dict[str, tuple[str, ...]], name: str = "grid", **more: Any
) -> tuple[Run, ...]:
    tenant = installation.tenant
    spec = RunSpec(command=("train", "{steps}", "1", "5"), **more)
    return installation.runs.create_sweep(tenant.actor, tenant.project, name, spec, {"TOKEN": "x"}, grid)


def finished(installation: RunInstallation, runs: tuple[Run, ...]) -> list[Run]:
    for _ in range(200):
        installation.turn()
        seen = [installation.seen(each) for each in runs]
        if all(map(is_over, seen)):
            return seen
    raise AssertionError([each.phase for each in seen])


def test_every_combination_runs(installation: RunInstallation) -> None:
    runs = swept(installation, {"steps": ("3", "4", "5")})
    assert [each.name for each in runs] == ["grid-1", "grid-2", "grid-3"]
    seen = finished(installation, runs)
    assert {each.phase for each in seen} == {RunPhase.DONE}
    assert [installation.text(each).count("step") for each in seen] == [3, 4, 5]
    assert [each.spec.parameters for each in seen] == [{"steps": "3"}, {"steps": "4"}, {"steps": "5"}]
    with pytest.raises(Conflict, match="sweep `grid`"):
        swept(installation, {"steps": ("3",)})


def test_budget_is_that_of_all_runs_together(installation: RunInstallation) -> None:
    """Each instance costs 1 for every second that the clock has moved since the sweep began."""
    one_card = ShapeWish(gpu="V100")  # there are four
    grid = {"steps": tuple(map(str, range(100, 106)))}
    runs = swept(installation, grid, budget_micros=60, shape=one_card)
    began = installation.clock.now()
    asked: list[str] = []

    def spent(run: Run) -> int:
        asked.append(run.name)
        ids = installation.runs.instances_of_sweep(run)
        return len(ids) * int((installation.clock.now() - began).total_seconds())

    installation.spent = spent
    seen = finished(installation, runs)
    assert {each.phase for each in seen} == {RunPhase.FAILED}
    assert {each.problem for each in seen} == {"The runs of its sweep reached their budget together"}
    assert any(not each.instances for each in seen), "those that waited did not start"
    assert set(asked) == {each.name for each in runs}


def test_too_many_runs_are_refused_as_a_whole(installation: RunInstallation) -> None:
    swept(installation, {"steps": tuple(map(str, range(1, 101)))}, "first")
    swept(installation, {"steps": tuple(map(str, range(1, 100)))}, "second")
    with pytest.raises(QuotaReached):
        swept(installation, {"steps": ("1", "2")}, "third")
    with pytest.raises(BadInput):
        swept(installation, {"steps": ()}, "fourth")
    found = installation.runs.page(installation.tenant.project.id, before="", limit=999, active=False)
    assert {each.sweep for each in found} == {"first", "second"}
