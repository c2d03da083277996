"""Which providers machines can be rented from, and how each driver was tested. A test compares it with the drivers."""

from collections.abc import Mapping
from typing import Final

import msgspec

JUDGED: Final = "judged by the provider's description; untested live"
NOT_YET: Final = "there is no driver yet"


class Renting(msgspec.Struct, frozen=True, kw_only=True):
    """What Teraflock can do with an account at a provider."""

    launch: bool = False
    catalog: bool = False
    """Reads types, prices and free capacity from the provider."""
    spot: str = ""
    """The modes besides on-demand that can be launched; empty: none."""
    stop: bool = False
    """A stopped machine keeps its disk."""
    tested: str = ""
    """How the driver was tested; empty: there is none."""
    missing: str = ""
    """What is missing."""


RENTING: Final[Mapping[str, Renting]] = {
    "lambda": Renting(
        launch=True, catalog=True, tested=JUDGED, missing="stop and spot, which the provider does not have"
    ),
    "vast": Renting(
        launch=True,
        catalog=True,
        spot="bid",
        tested=JUDGED,
        missing="stop: a stopped machine may not come back",
    ),
    "runpod": Renting(
        launch=True,
        catalog=True,
        tested=JUDGED,
        missing="spot, commands and user-data; stop: a stopped machine may come back without GPUs",
    ),
    "aws": Renting(
        launch=True,
        catalog=True,
        spot="spot",
        stop=True,
        tested="moto; untested live",
        missing="interruption notices",
    ),
}


def renting(provider: str) -> Renting:
    return RENTING.get(provider, Renting(missing=NOT_YET))
