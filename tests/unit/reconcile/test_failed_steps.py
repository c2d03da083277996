"""A step that could not be recorded, because the database failed, is tried again by the same server."""

import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from tests.faults.installation import Installation

from teraflock.base.clock import FixedClock, SystemClock
from teraflock.base.errors import StorageFailed
from teraflock.drivers.simulated.world import MemoryWorld
from teraflock.instance.model import Instance
from teraflock.instance.orders import Order
from teraflock.instance.states import Phase
from teraflock.reconcile import loops as loops_module
from teraflock.reconcile.loops import Loops
from teraflock.storage.open import open_database

WAIT_SECONDS_MAX = 60  # so that a failing test ends; a passing test never waits this long


@pytest.fixture
def installation(tmp_path: Path) -> Iterator[Installation]:
    clock = FixedClock(SystemClock().now())
    database = open_database(f"sqlite:///{tmp_path / 'cloud.db'}", clock)
    yield Installation(database, MemoryWorld(), clock)
    database.close()


def test_an_instance_continues_after_the_database_failed(
    installation: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loops_module, "FAILED_SECONDS", 0.05)
    tenant = installation.tenant
    installation.service.launch(tenant.actor, tenant.project, Order(name="one"))
    loops = Loops(installation.database, SystemClock(), installation.engines, alone=True)
    advance, failures = loops.instances.advance, [StorageFailed("The disk is full", hint="")]

    def fails_once(instance: Instance) -> None:
        if failures:
            raise failures.pop()
        advance(instance)

    monkeypatch.setattr(loops.instances, "advance", fails_once)
    loops.start()
    try:
        give_up_at = time.monotonic() + WAIT_SECONDS_MAX
        while installation.service.view(tenant.project.id, "one").instance.phase != Phase.RUNNING:
            assert time.monotonic() < give_up_at
            installation.clock.move(timedelta(seconds=1))  # the simulated guest boots
            time.sleep(0.02)
    finally:
        loops.stop()
    assert not failures
