"""Acts that must not miss a concurrent launch: each begins while a launch is between its checks and its commit.

On PostgreSQL the two really overlap; on SQLite the second waits for its turn. What holds is the same.
"""

import json
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import pytest
from tests.faults.installation import Installation

from teraflock.api import store as answers
from teraflock.base.errors import Conflict, NotFound, Refused, TeraflockError
from teraflock.instance import launching
from teraflock.instance.orders import Order
from teraflock.storage.database import Database, Transaction
from teraflock.tenant.model import Actor, Project
from teraflock.tenant.service import TenantService

WAIT_SECONDS_MAX = 60
BLOCKED_SECONDS = 0.5  # how long the launch waits for the other act before it commits


def overlapped(
    installation: Installation,
    monkeypatch: pytest.MonkeyPatch,
    actor: Actor,
    project: Project,
    act: Callable[[], object],
) -> tuple[TeraflockError | None, TeraflockError | None]:
    """The errors of the launch and of the other act, which begins when the launch has made all its checks."""
    checked, is_done = threading.Event(), threading.Event()
    set_aside = launching._set_aside

    def slowly(*words: Any) -> Any:
        checked.set()
        is_done.wait(BLOCKED_SECONDS)
        return set_aside(*words)

    monkeypatch.setattr(launching, "_set_aside", slowly)

    def second() -> None:
        assert checked.wait(WAIT_SECONDS_MAX)
        try:
            act()
        finally:
            is_done.set()

    with ThreadPoolExecutor() as pool:
        launch = pool.submit(installation.service.launch, actor, project, Order(name="new"))
        other = pool.submit(second)
        errors = [done.exception() for done in (launch, other)]
    assert all(error is None or isinstance(error, TeraflockError) for error in errors), errors
    return errors[0], errors[1]  # type: ignore[return-value]


def firm(installation: Installation) -> tuple[TenantService, Actor, Project]:
    tenants = TenantService(installation.database, installation.clock, installation.random_bytes)
    made = tenants.organisations.make(installation.tenant.actor, "firm", "ann")
    return tenants, tenants.authenticate(made.key.secret), made.project


def test_project_is_not_removed_during_a_launch(
    installation: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    tenants, ann, project = firm(installation)
    launch, removal = overlapped(
        installation, monkeypatch, ann, project, lambda: tenants.projects.remove(ann, project.id)
    )
    assert isinstance(removal, Refused) or isinstance(launch, NotFound)
    assert removal is None or launch is None


def test_organisation_is_not_deleted_during_a_launch(
    installation: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    tenants, ann, project = firm(installation)
    operator = installation.tenant.actor
    launch, removal = overlapped(
        installation, monkeypatch, ann, project,
        lambda: tenants.organisations.remove(operator, "firm", "asked for", force=False),
    )  # fmt: skip
    assert isinstance(removal, Refused) or isinstance(launch, Refused)
    assert removal is None or launch is None


def test_image_is_not_removed_during_a_launch(
    installation: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, ann, project = firm(installation)
    tenant = installation.tenant
    launch, removal = overlapped(
        installation,
        monkeypatch,
        ann,
        project,
        lambda: installation.images.delete(tenant.actor, tenant.project, "base"),
    )
    assert launch is None
    assert isinstance(removal, Conflict)


def test_launch_is_charged_in_the_new_region_of_its_host(
    installation: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last event of an instance has the region of its host, which decides its price."""
    _, ann, project = firm(installation)
    with installation.database.read() as tx:
        hosts = [row[0] for row in tx.all("SELECT id FROM host ORDER BY id")]

    def move_all() -> None:
        for host in hosts:
            installation.service.set_region(installation.tenant.actor, host, "north")

    assert overlapped(installation, monkeypatch, ann, project, move_all) == (None, None)
    with installation.database.read() as tx:
        rows = tx.all("SELECT details FROM event WHERE kind LIKE 'instance.%'")
    last = max((json.loads(row[0]) for row in rows), key=lambda details: details["sequence"])
    assert last["region"] == "north"


def test_only_one_of_many_requests_with_the_same_key_is_carried_out(database: Database) -> None:
    """All others wait until it is committed, and return its response."""
    clients = 16
    barrier = threading.Barrier(clients)
    worked: list[int] = []
    now = datetime(2026, 11, 15, tzinfo=UTC)

    def request(client: int) -> str:
        def work(tx: Transaction) -> str:
            if answers.reserve(tx, "scope", "key", "digest", now):
                worked.append(client)
                answers.keep_answer(tx, "scope", "key", f"by {client}")
            kept = answers.kept(tx, "scope", "key")
            assert kept is not None
            return kept.answer

        with suppress(threading.BrokenBarrierError):
            barrier.wait(WAIT_SECONDS_MAX)
        return (database.write_with_locks if client % 2 else database.write)(work)

    with ThreadPoolExecutor(clients) as pool:
        told = set(pool.map(request, range(clients)))
    assert told == {f"by {worked[-1]}"}
