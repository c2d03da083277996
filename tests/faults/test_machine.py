"""Random runs of an installation, on both databases."""

from collections.abc import Callable
from contextlib import ExitStack

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test
from tests.faults.machine import InstallationMachine, fresh_sqlite
from tests.long import counted
from tests.postgres_server import PostgresServer

from teraflock.base.clock import FixedClock
from teraflock.storage.database import Database
from teraflock.storage.open import open_database


def live(open_fresh: Callable[[FixedClock], Database], *, lives: int, steps: int) -> None:
    machine = type("Life", (InstallationMachine,), {"open_fresh": staticmethod(open_fresh)})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=lives,
            stateful_step_count=steps,
            deadline=None,
            derandomize=True,
            suppress_health_check=list(HealthCheck),
        ),
    )


@pytest.mark.parametrize("lives", counted(6, 40, because="many lives"))
def test_random_runs_on_sqlite(lives: int) -> None:
    live(fresh_sqlite, lives=lives, steps=40)


@pytest.mark.parametrize("lives", counted(2, 10, because="many lives"))
def test_random_runs_on_postgres(postgres_server: PostgresServer, lives: int) -> None:
    with ExitStack() as databases:

        def fresh(clock: FixedClock) -> Database:
            return open_database(databases.enter_context(postgres_server.fresh(migrated=True)), clock)

        live(fresh, lives=lives, steps=30)
