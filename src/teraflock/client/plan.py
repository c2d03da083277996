"""Plans: which offers to take for a workload."""

from typing import TYPE_CHECKING

from teraflock.client.noun import Noun

if TYPE_CHECKING:
    from teraflock.wire.plan import PlanRequest, PlanShape


class Plans(Noun):
    in_project = False

    def create(self, request: "PlanRequest") -> "PlanShape":
        """Where nothing fits, the plan has no choices and `no_plan` says why."""
        from teraflock.wire.plan import PlanShape  # here: a cold `tera ps` must not load the planner

        return self._act("POST", PlanShape, "plans", body=request)
