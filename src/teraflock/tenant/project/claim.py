"""Locks a project and its organisation, for everything that counts against their quotas and budgets.

A transaction that would use more of a project claims it first and reads the usage afterwards. So two concurrent
transactions cannot both miss each other's usage.
"""

from teraflock.base.errors import NotFound
from teraflock.storage.database import Overtaken, Transaction
from teraflock.tenant.model import Project
from teraflock.tenant.project import store
from teraflock.tenant.quota.rules import limits_nothing
from teraflock.tenant.quota.store import lock_quota, name_and_quota


def claimed(tx: Transaction, project: Project) -> Project:
    """Lock the project until the transaction ends, and return it as it is now: its quota may have changed.

    An organisation without limits gets a shared lock, so that its projects do not wait for each other.
    """
    home = project.organisation_id
    shared = limits_nothing(name_and_quota(tx, home)[1])
    locked = lock_quota(tx, home, shared=shared)
    if shared and not limits_nothing(locked):
        raise Overtaken("the organisation now has limits")
    fresh = store.claim(tx, project.id)
    if fresh is None:
        raise NotFound(
            f"Project `{project.name}` no longer exists", hint="`tera project list` lists all projects"
        )
    return fresh
