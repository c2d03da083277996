"""The dependencies of every loop. Everything else a loop reads from the database."""

from collections.abc import Callable

import msgspec

from teraflock.base.clock import Clock
from teraflock.fleet.placement import Policy
from teraflock.instance.engines import Engines
from teraflock.storage.database import Database


class Surroundings(msgspec.Struct, frozen=True, kw_only=True):
    database: Database
    clock: Clock
    engines: Engines
    random_bytes: Callable[[int], bytes]
    policy: Policy = Policy()
    wake: Callable[[], None] = lambda: None
    """A loop calls this when it made something due for the instance loop."""
