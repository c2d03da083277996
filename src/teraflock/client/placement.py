"""Placements: where a launch would run, and why."""

from teraflock.client.noun import Noun
from teraflock.wire.instance import LaunchRequest
from teraflock.wire.placement import PlacementAnswer


class Placements(Noun):
    def explain(self, request: LaunchRequest) -> PlacementAnswer:
        """Where a launch would run now, and why. Nothing is launched."""
        return self._act("POST", PlacementAnswer, "placements", body=request)
