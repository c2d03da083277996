"""The dependencies of every loop. Everything else a loop reads from the database."""

from collections.abc import Callable

import msgspec

from teraflock.base.clock import Clock
from teraflock.fleet.placement import Policy
from teraflock.instance.changes import Admits
from teraflock.instance.engines import Engines
from teraflock.storage.database import Database


class Surroundings(msgspec.Struct, frozen=True, kw_only=True):
    database: Database
    clock: Clock
    engines: Engines
    random_bytes: Callable[[int], bytes]
    policy: Policy = Policy()
    admits: Admits = lambda tx, project_id: None
    """Raises if budgets or spending limits do not allow what a project has now."""
    wake: Callable[[], None] = lambda: None
    """A loop calls this when it made something due for the instance loop."""
