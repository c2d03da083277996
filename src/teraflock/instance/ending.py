"""The answer of an engine that has accepted a delete and still lists the machine."""

from datetime import datetime
from typing import ClassVar

from teraflock.instance.engine_errors import EngineBusy


class StillEnding(EngineBusy):
    """The provider accepted the delete. Ask again until its listing confirms it."""

    for_tenant: ClassVar[str] = "Its provider is deleting it. This continues by itself"

    def __init__(self, sentence: str, *, over_at: datetime | None = None) -> None:
        """`over_at` is when the machine stopped costing money. None: the driver does not know."""
        super().__init__(sentence)
        self.over_at = over_at
