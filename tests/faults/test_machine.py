"""Random lives of a house, on both databases."""

from hypothesis import HealthCheck, settings
from tests.faults.machine import HouseMachine, fresh_sqlite

QUIET = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]


class OnSqlite(HouseMachine):
    open_fresh = staticmethod(fresh_sqlite)


TestOnSqlite = OnSqlite.TestCase
TestOnSqlite.settings = settings(
    max_examples=60, stateful_step_count=40, deadline=None, suppress_health_check=QUIET
)
