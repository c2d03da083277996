"""Rents the next machine of an instance, after one was lost or could not be used. Budgets and quotas are checked again.

The old machine is given back, or lost, before this is called: an instance never has two. What is written here commits
together with the change of the instance, so that a crash leaves the old place or the new one, with its own host.
"""

from collections.abc import Callable
from datetime import datetime
from functools import partial

from msgspec.structs import replace

from teraflock.base.errors import Refused, TeraflockError
from teraflock.fleet.rented import store as rented_hosts
from teraflock.instance import store
from teraflock.instance.candidates import at_candidate, is_same_machine, places, region_of, type_of
from teraflock.instance.claims import check_quota
from teraflock.instance.events import notice_of, problem_texts
from teraflock.instance.model import Instance
from teraflock.instance.providing import usable_sites
from teraflock.instance.rented_host import expect_cost, with_rented_host
from teraflock.reconcile.surroundings import Surroundings
from teraflock.storage.database import Transaction
from teraflock.storage.events import record_event
from teraflock.tenant.model import Project
from teraflock.tenant.project.store import project_of_any_organisation

Fails = Callable[[Instance], Instance]
"""The instance when its next machine must not be rented. Its problem is set."""


def rent_again(
    tx: Transaction,
    around: Surroundings,
    before: Instance,
    after: Instance,
    now: datetime,
    *,
    fails: Fails,
    last_seen: datetime | None = None,
) -> Instance:
    """Write the instance at its selected place, or as failed if renting there is not allowed."""
    put = partial(store.put, tx, now=now, random_bytes=around.random_bytes)
    try:
        there = _prepared(tx, around, before, after, now)
    except Refused as error:
        return put(before, fails(_troubled(before, error)), last_seen=last_seen)
    stored = put(before, there, last_seen=last_seen)
    try:
        around.admits(tx, after.project_id)
    except TeraflockError as error:
        return put(stored, fails(_troubled(stored, error)))
    _tell(tx, around, stored, now)
    return stored


def _prepared(
    tx: Transaction, around: Surroundings, before: Instance, after: Instance, now: datetime
) -> Instance:
    project = project_of_any_organisation(tx, after.project_id)
    assert project is not None, "a project with instances is not removed"
    assert before.host_id is not None, "a rented instance that is launched has a host"
    there = _usable(tx, around, project, before, after)
    driver = around.engines.at(there.site)
    if is_same_machine(before, there):
        rented_hosts.move_rented(tx, before.host_id, region_of(there))
        expect_cost(tx, there, before.host_id, type_of(there, driver.types()))
        return there
    check_quota(tx, project, there.shape, 1, instead_of=before.shape)
    return with_rented_host(tx, there, driver, driver.types(), now=now, random_bytes=around.random_bytes)


def _usable(
    tx: Transaction, around: Surroundings, project: Project, before: Instance, after: Instance
) -> Instance:
    """The instance at the first place from its own on whose site the project may still use."""
    rental = after.spec.rental
    assert rental is not None, "only rented instances are rented again"
    allowed = usable_sites(tx, around.engines, project) | {before.site}
    found = (at_candidate(after, after.candidate + more) for more in range(len(places(rental))))
    usable = next((each for each in found if each.site in allowed and each.site in around.engines), None)
    if usable is None:
        raise Refused(
            "The project may no longer use an account for any of the other offers",
            hint="Ask the operator, or launch with another offer",
        )
    skipped, progress = usable.candidate - after.candidate, usable.progress
    return replace(usable, progress=progress and replace(progress, tries=progress.tries + skipped))


def _troubled(instance: Instance, error: TeraflockError) -> Instance:
    problem, for_operator = problem_texts(error)
    why = f"No other machine was rented: {problem}"
    return replace(instance, problem=why, problem_operator=for_operator)


def _tell(tx: Transaction, around: Surroundings, instance: Instance, now: datetime) -> None:
    rental = instance.spec.rental
    assert rental is not None, "only rented instances are rented again"
    details = {
        "site": instance.site,
        "type": rental.type,
        "region": region_of(instance),
        "mode": instance.spec.mode,
        "reason": instance.problem,
    }
    record_event(tx, notice_of("instance.rented_again", instance, now, around.random_bytes, **details))
