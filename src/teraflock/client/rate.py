"""Exchange rates."""

from typing import TYPE_CHECKING

from teraflock.client.noun import Noun

if TYPE_CHECKING:
    from teraflock.wire.rate import RateShape


class RateList(Noun):
    in_project = False

    def list(self) -> "tuple[RateShape, ...]":
        from teraflock.wire.rate import RateShape  # imported here: a cold `tera ps` must not load the planner

        return self._get(tuple[RateShape, ...], "rates")
