"""The state machine of keys in memory, where many walks cost little; tests/contract/tenant has some on both engines."""

from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test
from tests.unit.tenant.keys_machine import machine_on

from teraflock.base.clock import SystemClock
from teraflock.storage.open import open_database


def test_keys_open_what_the_model_says() -> None:
    database = open_database(":memory:", SystemClock())
    run_state_machine_as_test(
        machine_on(database), settings=settings(max_examples=60, stateful_step_count=25, deadline=None)
    )
    database.close()
