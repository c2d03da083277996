"""Checks with the oracle at every look whether budgets hold.

A hard budget is exceeded by at most the cost of what runs between the look before it was exceeded and the
second look after: one metering step, if the loops run. From that second look on, nothing may run.
"""

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from tests.simulation.cloud import Cloud


class Look(msgspec.Struct, kw_only=True):
    month: str
    limit: int
    at_us: int
    committed: int
    """What was spent, and what short runs will be charged for in any case."""
    over: int = 0
    """How many looks have found the budget exceeded."""


class Watch:
    def __init__(self) -> None:
        self._last: dict[str, Look] = {}

    def forget(self, project: str = "") -> None:
        """Start again after the clock was set or the budget changed."""
        for name in [project] if project else list(self._last):
            self._last.pop(name, None)

    def looked(self, cloud: "Cloud") -> None:
        cloud.learn_covers()
        month, limits = f"{cloud.clock.now():%Y-%m}", cloud.limits()
        for project, limit in limits.items():
            spent, before = cloud.spent(project), self._last.get(project)
            if before is None or (before.month, before.limit) != (month, limit):
                before = self._last[project] = self._look(cloud, project, month, limit, spent)
                if spent < limit:
                    continue
            if spent < limit:
                self._last[project] = self._look(cloud, project, month, limit, spent)
                continue
            before.over += 1
            if before.over >= 2:
                running = [
                    id
                    for id, life in cloud.oracle.lives.items()
                    if life.project == project and life.wanted == "running" and life.phase != "failed"
                ]
                assert not running, (
                    f"the budget of {project} was exceeded two looks ago, but {running} is running"
                )
            if before.over == 2:
                self._amount(cloud, project, before, spent)

    def _look(self, cloud: "Cloud", project: str, month: str, limit: int, spent: int) -> Look:
        short = sum(
            cloud.oracle.committed(id, cloud.now_us)
            for id, life in cloud.oracle.lives.items()
            if life.project == project
        )
        return Look(month=month, limit=limit, at_us=cloud.now_us, committed=spent + short)

    def _amount(self, cloud: "Cloud", project: str, before: Look, spent: int) -> None:
        cloud.count["budgets passed"] += 1
        passed, allowed = (
            spent - max(before.limit, before.committed),
            self._cost_since(cloud, project, before.at_us),
        )
        assert passed <= allowed, (
            f"the budget of {project} is exceeded by {passed}, but a step costs {allowed}"
        )

    def _cost_since(self, cloud: "Cloud", project: str, from_us: int) -> int:
        """Return the cost of everything held since then, and the minimum of runs that restarted by
        themselves."""
        lives = [(id, life) for id, life in cloud.oracle.lives.items() if life.project == project]
        total = sum(cloud.oracle.cost(id, cloud.now_us, from_us) for id, _ in lives)
        total += sum(cloud.oracle.traffic_since(id, from_us) for id, _ in lives)
        total += cloud.instalments_since(project, from_us)
        short = sum(cloud.oracle.lacking(id, each) for id, life in lives for each in life.stretches
                    if each.short_us is not None and each.run == 1 and (each.until_us or 0) > from_us)  # fmt: skip
        return total - short + len(lives)
