"""Estimates: what a workload needs on each GPU model."""

from typing import TYPE_CHECKING

from teraflock.client.noun import Noun

if TYPE_CHECKING:
    from teraflock.estimate.model import Estimate
    from teraflock.wire.estimate import EstimateRequest


class Estimates(Noun):
    in_project = False

    def create(self, request: "EstimateRequest") -> "Estimate":
        from teraflock.estimate.model import (
            Estimate,
        )  # imported here: a cold `tera ps` must not load the planner

        return self._act("POST", Estimate, "estimates", body=request)
