"""Recommendations: GPU models and offers for a purpose."""

from typing import TYPE_CHECKING

from teraflock.client.noun import Noun

if TYPE_CHECKING:
    from teraflock.wire.recommendation import RecommendationRequest, RecommendationShape


class Recommendations(Noun):
    in_project = False

    def create(self, request: "RecommendationRequest") -> "RecommendationShape":
        from teraflock.wire.recommendation import RecommendationShape  # imported here as in `plan.py`

        return self._act("POST", RecommendationShape, "recommendations", body=request)
