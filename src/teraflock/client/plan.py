"""Plans: the offers that can finish a workload, ranked by cost."""

from typing import TYPE_CHECKING

from teraflock.client.noun import Noun

if TYPE_CHECKING:
    from teraflock.wire.plan import PlanRequest, PlanShape


class Plans(Noun):
    in_project = False

    def create(self, request: "PlanRequest") -> "PlanShape":
        """If no offer fits, the plan has no choices and `no_plan` has the reason."""
        from teraflock.wire.plan import PlanShape  # imported here: a cold `tera ps` must not load the planner

        return self._act("POST", PlanShape, "plans", body=request)
