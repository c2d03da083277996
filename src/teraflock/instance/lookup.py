"""Finding an instance by name or id, and the errors for one that is missing or cannot do something now."""

from datetime import datetime, timedelta
from typing import Final

from teraflock.base.errors import Conflict, NotFound
from teraflock.instance import store
from teraflock.instance.model import Instance, View
from teraflock.instance.states import Phase
from teraflock.storage.database import Transaction
from teraflock.tenant.model import ProjectId

OUTPUT_KEPT: Final = timedelta(days=7)
"""How long the log of a command can be read after its instance is gone."""


def found(tx: Transaction, project: ProjectId, ref: str) -> View:
    view = store.find(tx, project, ref)
    if view is None:
        raise NotFound(f"The project has no instance `{ref[:80]}`", hint="`tera ps` lists them")
    return view


def found_or_deleted(tx: Transaction, project: ProjectId, ref: str, now: datetime) -> View:
    """Like `found`, but also by the name of one that deleted itself: its log and exit code are kept for a while."""
    view = store.find(tx, project, ref)
    return (
        view or store.find_deleted_by_itself(tx, project, ref, now - OUTPUT_KEPT) or found(tx, project, ref)
    )


def is_at_rest(instance: Instance) -> bool:
    """Whether it is running or stopped, and has no operation or request."""
    is_steady = instance.phase in (Phase.RUNNING, Phase.STOPPED)
    return is_steady and instance.progress is None and instance.request is None


def check_at_rest(instance: Instance, what: str) -> None:
    if not is_at_rest(instance):
        raise cannot(what, instance)


def cannot(what: str, instance: Instance) -> Conflict:
    doing = instance.progress.operation if instance.progress else None
    if doing is None and instance.request:
        doing = instance.request.operation
    now = f"{instance.phase}, with a {doing} in progress" if doing else str(instance.phase)
    return Conflict(
        f"`{instance.name}` cannot {what} now: it is {now}",
        hint="Try again later. `tera show` has the details",
    )
