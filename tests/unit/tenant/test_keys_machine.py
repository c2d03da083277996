"""The state machine of keys in memory, where many runs are cheap. tests/contract/tenant runs it on both databases."""

import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test
from tests.long import counted
from tests.unit.tenant.keys_machine import machine_on

from teraflock.base.clock import SystemClock
from teraflock.storage.open import open_database


@pytest.mark.parametrize("runs", counted(15, 60, because="many runs"))
def test_keys_have_the_permissions_of_the_model(runs: int) -> None:
    database = open_database(":memory:", SystemClock())
    run_state_machine_as_test(
        machine_on(database), settings=settings(max_examples=runs, stateful_step_count=25, deadline=None)
    )
    database.close()
