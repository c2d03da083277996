"""The state machine of keys in memory, where many runs are cheap. tests/contract/tenant runs it on both databases."""

from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test
from tests.unit.tenant.keys_machine import machine_on

from teraflock.base.clock import SystemClock
from teraflock.storage.open import open_database


def test_keys_have_the_permissions_of_the_model() -> None:
    database = open_database(":memory:", SystemClock())
    run_state_machine_as_test(
        machine_on(database), settings=settings(max_examples=60, stateful_step_count=25, deadline=None)
    )
    database.close()
