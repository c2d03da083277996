"""Ends workers at every point of every operation on a rented machine, and tests the failures of clouds.

In every case, an instance has at most one machine, every rented machine belongs to an instance, and no rented
machine is forgotten. Covers clouds with and without launch tokens, with and without listing delays.
"""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace
from tests.faults.checker import faults
from tests.faults.house import SKY, House
from tests.long import sampled

from teraflock.base.clock import FixedClock, microseconds
from teraflock.base.errors import BadInput, Refused
from teraflock.drivers.simulated.cloud import CLOUD
from teraflock.drivers.simulated.faults import FOREVER, Kind, SimulatedFault, When
from teraflock.drivers.simulated.life import as_of
from teraflock.drivers.simulated.model import Guest
from teraflock.drivers.simulated.world import MemoryWorld
from teraflock.instance.driver import GRACE, Capability
from teraflock.instance.model import Access, Instance, Operation, RestartPolicy
from teraflock.instance.orders import Order
from teraflock.instance.states import Phase
from teraflock.meter.service import MeterService
from teraflock.reconcile.rehearsal import points
from teraflock.storage.memory import MemoryDatabase
from teraflock.storage.migrate import migrate

START = datetime(2026, 11, 15, tzinfo=UTC)
ORDER = Order(name="one", site=SKY, type="gpu")
CLOUDS: dict[str, dict[str, Any]] = {
    "prompt": {},
    "late": {"listing_seconds": 20.0},
    "without-tokens": {"tokens": False},
    "late-without-tokens": {"tokens": False, "listing_seconds": 20.0},
}


def built(cloud: str) -> House:
    clock = FixedClock(START)
    database = MemoryDatabase()
    migrate(database, clock)
    return House(database, MemoryWorld(), clock, sky=MemoryWorld(), **CLOUDS[cloud])


def ask(house: House, act: str, *words: object) -> None:
    getattr(house.service, act)(house.tenant.actor, house.tenant.project, *words)


def one(house: House) -> Instance:
    return house.service.page(house.tenant.project.id, limit=9, gone=True)[0].instance


def settle(house: House) -> None:
    """Settle until listings show everything and extra machines are gone."""
    house.settle()
    house.wait(GRACE.total_seconds())
    house.settle()


def machines(house: House) -> list[Guest]:
    with house.sky_world.read() as turn:
        every = (as_of(each, house.clock.now()) for each in turn.every(Guest))
        return [each for each in every if each is not None]


def wrong(house: House) -> list[str]:
    """Return the problems of rented machines, from the tables and the cloud's world."""
    found = faults(house.database, house.world, house.clock.now(), house.sky_world)
    with house.database.read() as tx:
        forgotten = tx.all(
            "SELECT name FROM host WHERE kind = 'rented' AND gone_at_us IS NULL"
            " AND id NOT IN (SELECT host_id FROM instance WHERE host_id IS NOT NULL)"
        )
    return [*found, *(f"{row[0]}: a rented host without an instance" for row in forgotten)]


def launched(house: House) -> None:
    ask(house, "launch", ORDER)
    settle(house)


def stopped(house: House) -> None:
    launched(house)
    ask(house, "stop", "one")
    settle(house)


SCENES: dict[Operation, tuple[Callable[[House], None], str]] = {
    Operation.LAUNCH: (lambda house: None, "launch"),
    Operation.STOP: (launched, "stop"),
    Operation.START: (stopped, "start"),
    Operation.RESTART: (launched, "restart"),
    Operation.DELETE: (launched, "delete"),
}
DOES_NOT_COME_UP = SimulatedFault(call="ready", kind=Kind.DOES_NOT_BOOT)
WALK = [
    (cloud, operation, point)
    for cloud in CLOUDS
    for operation in SCENES
    for point in points(operation)
    if cloud in ("prompt", "late-without-tokens") or operation == Operation.LAUNCH
]


@pytest.mark.parametrize(
    ("cloud", "operation", "point"),
    sampled(
        WALK,
        every=8,
        because="every point of every operation on each cloud",
        id=lambda case: f"{case[0]}-{case[2]}",
    ),
)
def test_dead_worker_leaves_at_most_one_machine(cloud: str, operation: Operation, point: str) -> None:
    house = built(cloud)
    set_up, act = SCENES[operation]
    set_up(house)
    if ":undo:" in point:
        house.sky_trouble.faults(DOES_NOT_COME_UP)
    ask(house, act, ORDER if act == "launch" else "one")
    worker = house.workers[0]
    worker.dies_at = point
    for _ in range(60):
        if not house.survive(worker.turn, 0):
            break
        house.wait(1)
    else:
        raise AssertionError(f"{point} was never reached")
    settle(house)
    assert wrong(house) == []
    assert one(house).phase in (Phase.RUNNING, Phase.STOPPED, Phase.FAILED, Phase.GONE)
    ask(house, "delete", one(house).id)
    settle(house)
    assert machines(house) == []
    assert wrong(house) == []


@pytest.mark.parametrize("cloud", CLOUDS)
@pytest.mark.parametrize("call", ["create", "stop", "delete"])
@pytest.mark.parametrize("when", [When.HALF, When.AFTER])
@pytest.mark.parametrize("kind", [Kind.ENGINE_DOWN, Kind.KILLED])
def test_lost_response_does_not_rent_twice(cloud: str, call: str, when: When, kind: Kind) -> None:
    house = built(cloud)
    house.sky_trouble.faults(SimulatedFault(call=call, when=when, kind=kind, times=2))
    ask(house, "launch", ORDER)
    for _ in range(30):
        house.survive(house.workers[0].turn, 0)
        house.wait(3)
    assert len(machines(house)) <= 1
    settle(house)
    assert wrong(house) == []
    ask(house, "delete", "one")
    for _ in range(10):
        house.survive(house.workers[0].turn, 0)
        house.wait(3)
    settle(house)
    assert machines(house) == []


def test_a_launch_undone_before_its_machine_is_listed_leaves_nothing() -> None:
    """The response is lost, the launch fails, and the machine is listed only later: it is found and given
    back."""
    house = built("late-without-tokens")
    house.sky_trouble.faults(
        SimulatedFault(call="create", when=When.AFTER, kind=Kind.REFUSED),
        SimulatedFault(call="create", kind=Kind.REFUSED),
    )
    ask(house, "launch", ORDER)
    house.workers[0].turn()
    assert one(house).phase == Phase.FAILED
    assert len(machines(house)) == 1, "no listing can show it yet"
    settle(house)
    assert machines(house) == []
    assert wrong(house) == []


def test_a_second_machine_is_given_back() -> None:
    """As if someone launched it with our label, or a cloud created two."""
    house = built("prompt")
    launched(house)
    (first,) = machines(house)
    with house.sky_world.write() as turn:
        turn.put(replace(first, remote_id="sim-999999"))
    house.workers[0].look()
    assert [each.remote_id for each in machines(house)] == [first.remote_id]
    assert one(house).phase == Phase.RUNNING


# Capacity, quota, money, credentials


def test_region_without_capacity_is_skipped() -> None:
    house = built("prompt")
    house.sky_trouble.sold_out("east")
    ask(house, "launch", ORDER)
    _work(house)
    view = house.service.view(house.tenant.project.id, "one")
    assert (view.instance.phase, view.rented and view.rented.region) == (Phase.RUNNING, "west")
    assert wrong(house) == []


def test_a_launch_that_fails_later_tries_the_next_region_and_pays_for_one() -> None:
    house = built("prompt")
    house.sky_trouble.faults(SimulatedFault(call="create", kind=Kind.LATER))
    ask(house, "launch", ORDER)
    _work(house)
    view = house.service.view(house.tenant.project.id, "one")
    assert (view.instance.phase, view.rented and view.rented.region) == (Phase.RUNNING, "west")
    assert len(machines(house)) == 1


def test_launch_without_capacity_fails_with_a_reason() -> None:
    house = built("prompt")
    house.sky_trouble.sold_out("east", "west")
    ask(house, "launch", ORDER)
    _work(house)
    assert one(house).phase == Phase.FAILED
    assert one(house).problem
    assert machines(house) == []


@pytest.mark.parametrize(
    ("trouble", "words"),
    [("quota", "has reached its limit"), ("money", "cannot pay")],
)
def test_quota_and_money_end_a_launch_at_once(trouble: str, words: str) -> None:
    """No other region is tried: the account is the same there."""
    house = built("prompt")
    if trouble == "quota":
        house.sky_trouble.quota(0)
    else:
        house.sky_trouble.runs_out_of_money()
    ask(house, "launch", ORDER)
    house.workers[0].turn()
    assert one(house).phase == Phase.FAILED
    assert words in one(house).problem
    assert one(house).candidate == 0


def test_bad_credentials_do_not_mark_machines_as_gone() -> None:
    house = built("prompt")
    launched(house)
    house.sky_trouble.locked_out()
    for _ in range(100):
        house.workers[0].beat()
        house.workers[0].look()
        house.wait(30)
    with house.database.read() as tx:
        rows = tx.all("SELECT problem FROM site_state WHERE site = 'sky'")
    assert "credentials" in rows[0][0]
    assert one(house).phase == Phase.RUNNING
    house.sky_trouble.locked_out(is_so=False)
    settle(house)
    assert one(house).phase == Phase.RUNNING
    assert wrong(house) == []
    with house.database.read() as tx:
        assert tx.all("SELECT problem FROM site_state WHERE site = 'sky'") == [("",)]
        assert tx.all("SELECT COUNT(*) FROM ran_unwatched")[0][0] >= 1, (
            "the record shows that it kept running"
        )


def test_one_incomplete_listing_changes_nothing() -> None:
    house = built("prompt")
    launched(house)
    house.wait(GRACE.total_seconds() + 1)
    (guest,) = machines(house)
    with house.sky_world.write() as turn:
        turn.remove(Guest, guest.key)
    house.workers[0].look()
    with house.sky_world.write() as turn:
        turn.put(guest)
    house.workers[0].look()
    settle(house)
    assert one(house).phase == Phase.RUNNING


# Interruptions and the restart policy


@pytest.mark.parametrize("notice", [timedelta(0), timedelta(minutes=2)])
@pytest.mark.parametrize("policy", [None, *RestartPolicy])
def test_reclaimed_machine_follows_the_restart_policy(
    policy: RestartPolicy | None, notice: timedelta
) -> None:
    """Only the restart policy allows renting another machine."""
    house = built("prompt")
    ask(house, "launch", Order(name="one", site=SKY, type="gpu", mode="spot", restart_policy=policy))
    settle(house)
    before = machines(house)[0].remote_id
    house.sky_trouble.taken_back(one(house).id, house.clock.now() + notice)
    house.workers[0].look()
    if notice:
        assert "instance.leaving" in _kinds(house)
    house.wait(notice.total_seconds())
    settle(house)
    after = [each.remote_id for each in machines(house)]
    if policy in (None, RestartPolicy.NEVER):
        assert (one(house).phase, after) == (Phase.FAILED, [])
        assert "lost" in one(house).problem
    else:
        view = house.service.view(house.tenant.project.id, "one")
        region = "west" if policy == RestartPolicy.ELSEWHERE else "east"
        assert (view.instance.phase, view.rented and view.rented.region) == (Phase.RUNNING, region)
        assert len(after) == 1
        assert after != [before]
    assert wrong(house) == []


def test_same_host_does_not_move_to_another_region() -> None:
    house = built("prompt")
    ask(house, "launch", Order(name="one", site=SKY, type="gpu", restart_policy=RestartPolicy.SAME_HOST))
    settle(house)
    house.sky_trouble.sold_out("east")
    house.sky_trouble.taken_back(one(house).id, house.clock.now())
    for _ in range(80):
        house.workers[0].look()
        house.workers[0].turn()
        house.wait(2)
    assert one(house).phase == Phase.FAILED
    assert machines(house) == []


def test_outbid_machine_is_lost() -> None:
    house = built("prompt")
    ask(house, "launch", Order(name="one", site=SKY, type="gpu", mode="bid", bid_micros_per_hour=350_000))
    settle(house)
    assert one(house).phase == Phase.RUNNING
    house.sky_trouble.price_changes("gpu", "east", "bid", 400_000, house.clock.now())
    settle(house)
    assert (one(house).phase, machines(house)) == (Phase.FAILED, [])


def test_machine_cost_follows_its_price() -> None:
    house = built("prompt")
    launched(house)
    house.sky_trouble.price_changes("gpu", "east", "on-demand", 1_100_000, house.clock.now())
    house.workers[0].look()
    house.workers[0].look()
    with house.database.read() as tx:
        (row,) = tx.all("SELECT cost_micros_per_hour, cost_currency FROM host WHERE kind = 'rented'")
        told = tx.all("SELECT COUNT(*) FROM event WHERE kind = 'instance.cost'")
    assert tuple(row) == (1_100_000, "USD")
    assert told[0][0] == 2, "once when it was rented, once when it changed"


@pytest.mark.parametrize("policy", RestartPolicy)
def test_an_own_instance_follows_its_policy_too(policy: RestartPolicy) -> None:
    house = built("prompt")
    ask(house, "launch", Order(name="one", restart_policy=policy))
    house.settle()
    house.trouble.stopped_by_hand(one(house).id)
    house.settle()
    never = policy == RestartPolicy.NEVER
    assert one(house).phase == (Phase.STOPPED if never else Phase.RUNNING)
    house.trouble.deleted_by_hand(one(house).id)
    house.settle()
    assert one(house).phase == (Phase.FAILED if never else Phase.RUNNING)
    assert faults(house.database, house.world, house.clock.now()) == []


def test_a_site_that_cannot_stop_ends_instances_by_deleting_them() -> None:
    clock, database = FixedClock(START), MemoryDatabase()
    migrate(database, clock)
    house = House(database, MemoryWorld(), clock, sky=MemoryWorld(), capabilities=CLOUD - {Capability.STOP})
    launched(house)
    with pytest.raises(Refused, match="does not support"):
        ask(house, "stop", "one")
    ask(house, "suspend", "one", "unpaid")
    settle(house)
    assert (one(house).phase, machines(house)) == (Phase.GONE, [])
    ask(house, "launch", Order(name="two", site=SKY, type="gpu", time_limit_seconds=60))
    settle(house)
    house.wait(90)
    settle(house)
    assert machines(house) == []
    ask(house, "launch", Order(name="three", site=SKY, type="gpu"))
    settle(house)
    house.service.end(house.tenant.actor, house.tenant.project, "three")
    settle(house)
    assert machines(house) == []


def test_a_command_on_a_rented_machine_runs_and_is_read() -> None:
    house = built("prompt")
    order = Order(name="one", site=SKY, type="gpu", access=Access.COMMAND, command=("echo", "hello"))
    ask(house, "launch", order)
    settle(house)
    log = house.service.guests.log(house.tenant.project.id, "one")
    assert (log.text, log.exit_code) == ("hello\n", 0)
    assert one(house).phase == Phase.STOPPED


def test_an_engine_that_is_away_for_long_undoes_a_launch_and_leaves_nothing() -> None:
    house = built("prompt")
    house.sky_trouble.faults(SimulatedFault(call="create", kind=Kind.ENGINE_DOWN, times=FOREVER))
    ask(house, "launch", ORDER)
    for _ in range(150):
        house.workers[0].turn()
        house.wait(5)
    assert one(house).phase == Phase.FAILED
    assert machines(house) == []


def _work(house: House) -> None:
    """Like `settle`, without removing the faults."""
    for _ in range(60):
        house.workers[0].turn()
        house.workers[0].look()
        house.wait(1)


def _kinds(house: House) -> list[str]:
    with house.database.read() as tx:
        return [row[0] for row in tx.all("SELECT kind FROM event ORDER BY id")]


def test_instance_without_restart_is_charged_until_found_stopped() -> None:
    house = built("prompt")
    launched(house)
    began = one(house).running_since
    house.wait(1000)
    house.workers[0].look()
    house.sky_trouble.stopped_by_hand(one(house).id)
    house.workers[0].look()
    found = house.clock.now()
    settle(house)
    assert one(house).phase == Phase.STOPPED
    MeterService(house.database, house.clock).catch_up()
    with house.database.read() as tx:
        rows = tx.all("SELECT from_us, until_us FROM meter_interval WHERE run_us IS NOT NULL")
    assert [tuple(row) for row in rows] == [(microseconds(began or found), microseconds(found))]


def test_disk_lost_during_an_outage_is_charged_until_last_listed() -> None:
    house = built("prompt")
    stopped(house)
    listed = house.clock.now()
    house.workers[0].look()
    house.sky_trouble.deleted_by_hand(one(house).id)
    house.wait(5000)
    settle(house)
    assert one(house).phase == Phase.FAILED
    MeterService(house.database, house.clock).catch_up()
    with house.database.read() as tx:
        rows = tx.all("SELECT until_us FROM meter_interval WHERE run_us IS NULL")
    assert [row[0] for row in rows] == [microseconds(listed)]


def test_site_without_exec_runs_no_commands_and_awaits_no_user_data() -> None:
    clock, database = FixedClock(START), MemoryDatabase()
    migrate(database, clock)
    house = House(database, MemoryWorld(), clock, sky=MemoryWorld(), capabilities=CLOUD - {Capability.EXEC})
    with pytest.raises(BadInput, match="cannot run a command"):
        ask(house, "launch", replace(ORDER, access=Access.COMMAND, command=("true",)))
    ask(house, "launch", replace(ORDER, user_data="#!/bin/sh\ntrue\n"))
    settle(house)
    assert (one(house).phase, one(house).user_data_waits) == (Phase.RUNNING, False)
    with pytest.raises(Refused, match="does not support"):
        house.service.guests.run(house.tenant.project.id, "one", ("true",))
