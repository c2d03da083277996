"""Auctions for idle cards on both databases: a bid wins, loses to a launch on demand, and its prices are published."""

from datetime import UTC, datetime, timedelta

import pytest
from tests.faults.installation import Installation

from teraflock.base.clock import FixedClock
from teraflock.base.errors import QuotaReached
from teraflock.bill import store as bills
from teraflock.bill.store import Profile
from teraflock.drivers.simulated.world import MemoryWorld
from teraflock.instance.bid.rules import CANCELS_FOR, CANCELS_MAX, FIRM_FOR, NOTICE
from teraflock.instance.orders import Order, ShapeWish
from teraflock.instance.states import Phase
from teraflock.storage.database import Database
from teraflock.tenant.model import Quota
from teraflock.tenant.service import TenantService

CARD = ShapeWish(gpu="V100")


def turns(installation: Installation, count: int, seconds: float) -> None:
    worker = installation.workers[0]
    for _ in range(count):
        worker.beat()
        worker.look()
        worker.turn()
        installation.clock.move(timedelta(seconds=seconds))


def test_bid_gives_way_with_notice_and_its_prices_are_published(database: Database) -> None:
    installation = Installation(database, MemoryWorld(), FixedClock(datetime(2026, 11, 15, tzinfo=UTC)))
    who, service = installation.tenant, installation.service
    for number in range(3):
        service.launch(who.actor, who.project, Order(name=f"busy-{number}", shape=CARD))
    order = Order(name="cheap", shape=CARD, mode="bid", bid_micros_per_hour=2_000_000)
    service.launch(who.actor, who.project, order)
    turns(installation, 3, 2)
    service.bids.change(who.actor, who.project, "cheap", 2_500_000)
    _, queued = service.launch_or_queue(who.actor, who.project, Order(name="urgent", shape=CARD))
    assert queued is not None
    turns(installation, 4, NOTICE.total_seconds() / 2)
    turns(installation, 6, 3)
    cheap = service.view(who.project.id, "cheap").instance
    assert cheap.phase == Phase.STOPPED
    assert cheap.preemptible is not None
    assert cheap.preemptible.waits_since is not None
    assert service.view(who.project.id, "urgent").instance.phase == Phase.RUNNING
    newest, *_, oldest = service.bids.prices(gpu="V100", limit=10)
    assert (newest.gpu, newest.currency) == ("V100-SXM2", "USD")
    assert newest.at > oldest.at
    assert service.bids.prices(region="nowhere", limit=10) == ()
    assert service.bids.prices(before=newest.id, limit=1)[0].id < newest.id


def test_launches_beyond_a_quota_take_no_cards(database: Database) -> None:
    """Each queued launch fits into the quota, but only one of them can start: one instance has to leave."""
    installation = Installation(database, MemoryWorld(), FixedClock(datetime(2026, 11, 15, tzinfo=UTC)))
    who, service = installation.tenant, installation.service
    tenants = TenantService(installation.database, installation.clock, installation.random_bytes)
    small = tenants.projects.make(who.actor, "small")
    tenants.projects.set_quota(who.actor, small.id, Quota(gpus={"V100-SXM2": 1}))
    for number in range(4):
        service.launch(who.actor, who.project, Order(name=f"cheap-{number}", shape=CARD, mode="spot"))
    turns(installation, 3, 2)
    for number in range(4):
        order = Order(name=f"urgent-{number}", shape=CARD)
        assert service.launch_or_queue(who.actor, small, order)[1] is not None
    turns(installation, 2, 2)
    views = [service.view(who.project.id, f"cheap-{number}").instance for number in range(4)]
    assert sum(bool(each.preemptible and each.preemptible.leaving_at) for each in views) == 1


def test_who_cancels_again_and_again_sends_nobody_away(database: Database) -> None:
    installation = Installation(database, MemoryWorld(), FixedClock(datetime(2026, 11, 15, tzinfo=UTC)))
    who, service = installation.tenant, installation.service
    for number in range(4):
        service.launch(who.actor, who.project, Order(name=f"cheap-{number}", shape=CARD, mode="spot"))
    turns(installation, 3, 2)

    def leaving() -> int:
        every = [service.view(who.project.id, f"cheap-{number}").instance for number in range(4)]
        return sum(bool(each.preemptible and each.preemptible.leaving_at) for each in every)

    for number in range(CANCELS_MAX + 2):
        _, queued = service.launch_or_queue(
            who.actor, who.project, Order(name="urgent", shape=CARD, queue=True)
        )
        assert queued is not None
        turns(installation, 2, 1)
        assert leaving() == (number <= CANCELS_MAX)
        service.queue.cancel(who.actor, who.project, queued.id)
        turns(installation, 1, 1)
        assert leaving() == 0
    installation.clock.move(CANCELS_FOR)
    service.launch_or_queue(who.actor, who.project, Order(name="urgent", shape=CARD))
    turns(installation, 2, 1)
    assert leaving() == 1


def test_bid_that_cannot_be_paid_sends_nobody_away(database: Database) -> None:
    installation = Installation(database, MemoryWorld(), FixedClock(datetime(2026, 11, 15, tzinfo=UTC)))
    who, service = installation.tenant, installation.service
    tenants = TenantService(installation.database, installation.clock, installation.random_bytes)
    poor = tenants.projects.make(who.actor, "poor")
    for number in range(3):
        service.launch(who.actor, who.project, Order(name=f"busy-{number}", shape=CARD))
    service.launch(
        who.actor, poor, Order(name="greedy", shape=CARD, mode="bid", bid_micros_per_hour=2_000_000)
    )
    turns(installation, 3, 2)
    service.launch_or_queue(who.actor, who.project, Order(name="urgent", shape=CARD))
    turns(installation, 3, NOTICE.total_seconds() / 2)
    turns(installation, 6, 1)
    service.delete(who.actor, who.project, "urgent")
    turns(installation, 3, 1)
    order = Order(name="victim", shape=CARD, mode="bid", bid_micros_per_hour=3_000_000)
    service.launch(who.actor, who.project, order)
    turns(installation, 3, 2)
    installation.clock.move(FIRM_FOR)
    service.bids.change(who.actor, poor, "greedy", 10**12)
    profile = Profile(project_id=poor.id, currency="USD", pays="prepaid")
    database.write(lambda tx: bills.set_profile(tx, profile))
    turns(installation, 3, 2)
    victim = service.view(who.project.id, "victim").instance
    assert victim.preemptible is not None
    assert victim.preemptible.leaving_at is None
    service.bids.change(who.actor, poor, "greedy", 1_000_000)
    with pytest.raises(QuotaReached):
        service.bids.change(who.actor, poor, "greedy", 1_000_001)
    service.delete(who.actor, who.project, "victim")
    turns(installation, 3, 2)
    service.launch(who.actor, who.project, Order(name="late", shape=CARD, mode="spot"))
