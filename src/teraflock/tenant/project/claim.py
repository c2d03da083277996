"""Locking a project with its organisation, for whatever counts against their quotas and budgets.

All who would use more of a project claim it first, and read what is used after that: so none of them misses another.
"""

from teraflock.base.errors import NotFound
from teraflock.storage.database import Overtaken, Transaction
from teraflock.tenant.model import Project
from teraflock.tenant.project import store
from teraflock.tenant.quota.rules import limits_nothing
from teraflock.tenant.quota.store import lock_quota, name_and_quota


def claimed(tx: Transaction, project: Project) -> Project:
    """The project as it is now, locked until the transaction ends. Its quota may have changed, or it was removed.

    An organisation without limits is shared: then its projects do not wait for each other.
    """
    home = project.organisation_id
    shared = limits_nothing(name_and_quota(tx, home)[1])
    locked = lock_quota(tx, home, shared=shared)
    if shared and not limits_nothing(locked):
        raise Overtaken("the organisation got limits just now")
    fresh = store.claim(tx, project.id)
    if fresh is None:
        raise NotFound(
            f"There is no project `{project.name}` any more", hint="`tera project list` lists them"
        )
    return fresh
