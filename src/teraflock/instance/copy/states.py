"""The states of copies on other hosts, of disks and of volumes."""

from collections.abc import Mapping, Set
from enum import StrEnum
from typing import Final


class CopyState(StrEnum):
    MAKING = "making"
    READY = "ready"
    REMOVING = "removing"
    """Never chosen again. The row of a volume's copy stays until it is removed from its host."""


COPY_MOVES: Final[Mapping[CopyState, Set[CopyState]]] = {
    CopyState.MAKING: {CopyState.READY, CopyState.REMOVING},
    CopyState.READY: {CopyState.REMOVING},
    CopyState.REMOVING: frozenset(),
}
