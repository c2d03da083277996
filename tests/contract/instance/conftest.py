"""Fixtures: an installation on each database."""

from datetime import UTC, datetime

import pytest
from tests.faults.installation import Installation

from teraflock.base.clock import FixedClock
from teraflock.drivers.simulated.world import MemoryWorld
from teraflock.storage.database import Database


@pytest.fixture
def installation(database: Database) -> Installation:
    """Two hosts with two cards each, and one without."""
    return Installation(database, MemoryWorld(), FixedClock(datetime(2026, 11, 15, tzinfo=UTC)))
