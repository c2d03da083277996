"""The drift loop on both databases: it compares again only after a change, and notices every change."""

from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial

import pytest
from tests.faults.installation import Installation

from teraflock.base.clock import FixedClock
from teraflock.drivers.simulated.trouble import Trouble
from teraflock.drivers.simulated.world import MemoryWorld
from teraflock.instance.orders import Order, ShapeWish
from teraflock.reconcile import drift
from teraflock.reconcile.known import KnownGuests
from teraflock.storage.database import Database, Transaction


class Lab:
    """An installation with two instances, and a count of the comparisons."""

    def __init__(self, database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
        clock = FixedClock(datetime(2026, 11, 15, 12, 0, 0, tzinfo=UTC))
        self.installation = Installation(database, MemoryWorld(), clock)
        tenant = self.installation.tenant
        for name in ("one", "two"):
            order = Order(name=name, shape=ShapeWish(gpu="V100"))
            self.installation.service.launch(tenant.actor, tenant.project, order)
        self.installation.settle()
        self.installation.wait(60 - clock.now().second)
        self.installation.workers[0].hosts.turn()
        self.loop = self.installation.workers[0].drift
        self.compared = 0
        decide = drift.decide

        def counted(*words: object) -> drift.Drift:
            self.compared += 1
            return decide(*words)  # type: ignore[arg-type]

        monkeypatch.setattr(drift, "decide", counted)
        self.turn()

    def turn(self) -> int:
        """How often one turn compared."""
        before = self.compared
        self.loop.turn()
        return self.compared - before

    def repairs(self) -> int:
        with self.installation.database.read() as tx:
            return len(tx.all("SELECT 1 FROM event WHERE kind = 'instance.drifted'"))


def run(tx: Transaction, sql: str) -> None:
    tx.run(sql)


@pytest.fixture
def lab(database: Database, monkeypatch: pytest.MonkeyPatch) -> Lab:
    return Lab(database, monkeypatch)


def test_a_turn_without_a_change_compares_nothing(lab: Lab) -> None:
    assert [lab.turn(), lab.turn()] == [0, 0]
    lab.installation.wait(60)
    assert [lab.turn(), lab.turn()] == [1, 0], "once a minute in any case"


@pytest.mark.parametrize(
    "act",
    [
        Trouble.stopped_by_hand,
        Trouble.deleted_by_hand,
        Trouble.cards_taken_by_hand,
        partial(Trouble.limits_changed_by_hand, vcpus=1, ram_bytes=1 << 30),
    ],
)
def test_a_change_on_the_engine_is_repaired_in_the_next_turn(
    lab: Lab, act: Callable[[Trouble, str], None]
) -> None:
    assert (lab.turn(), lab.repairs()) == (0, 0)
    act(lab.installation.trouble, next(iter(lab.installation.engine.sightings())).instance_id)
    lab.turn()
    assert lab.repairs() == 1


def test_every_change_of_the_database_is_noticed(lab: Lab) -> None:
    changes = (
        "UPDATE instance SET wanted = 'stopped', version = version + 1 WHERE name = 'one'",
        "UPDATE host SET state = 'away'",
        "UPDATE host_gpu SET instance_id = (SELECT id FROM instance WHERE name = 'two') WHERE instance_id IS NOT NULL",
    )
    known = KnownGuests(lab.installation.database, lab.installation.clock)
    for sql in changes:
        before = known.at(lab.installation.engine.site)
        assert known.at(lab.installation.engine.site) is before
        lab.installation.database.write(partial(run, sql=sql))
        after = known.at(lab.installation.engine.site)
        assert after != before, sql
