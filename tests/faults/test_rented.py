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
from tests.faults.installation import SKY, Installation
from tests.long import sampled

from teraflock.base.clock import microseconds
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

START = datetime(2026, 11, 15, tzinfo=UTC)
ORDER = Order(name="one", site=SKY, type="gpu")
CLOUDS: dict[str, dict[str, Any]] = {
    "prompt": {},
    "late": {"listing_seconds": 20.0},
    "without-tokens": {"tokens": False},
    "late-without-tokens": {"tokens": False, "listing_seconds": 20.0},
}


def built(cloud: str) -> Installation:
    return Installation.in_memory(START, sky=MemoryWorld(), **CLOUDS[cloud])


def ask(installation: Installation, act: str, *words: object) -> None:
    getattr(installation.service, act)(installation.tenant.actor, installation.tenant.project, *words)


def one(installation: Installation) -> Instance:
    return installation.service.page(installation.tenant.project.id, limit=9, gone=True)[0].instance


def settle(installation: Installation) -> None:
    """Settle until listings show everything and extra machines are gone."""
    installation.settle()
    installation.wait(GRACE.total_seconds())
    installation.settle()


def machines(installation: Installation) -> list[Guest]:
    with installation.sky_world.read() as turn:
        every = (as_of(each, installation.clock.now()) for each in turn.every(Guest))
        return [each for each in every if each is not None]


def wrong(installation: Installation) -> list[str]:
    """Return the problems of rented machines, from the tables and the cloud's world."""
    found = faults(
        installation.database, installation.world, installation.clock.now(), installation.sky_world
    )
    with installation.database.read() as tx:
        forgotten = tx.all(
            "SELECT name FROM host WHERE kind = 'rented' AND gone_at_us IS NULL"
            " AND id NOT IN (SELECT host_id FROM instance WHERE host_id IS NOT NULL)"
        )
    return [*found, *(f"{row[0]}: a rented host without an instance" for row in forgotten)]


def launched(installation: Installation) -> None:
    ask(installation, "launch", ORDER)
    settle(installation)


def stopped(installation: Installation) -> None:
    launched(installation)
    ask(installation, "stop", "one")
    settle(installation)


SCENES: dict[Operation, tuple[Callable[[Installation], None], str]] = {
    Operation.LAUNCH: (lambda installation: None, "launch"),
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
    installation = built(cloud)
    set_up, act = SCENES[operation]
    set_up(installation)
    if ":undo:" in point:
        installation.sky_trouble.faults(DOES_NOT_COME_UP)
    ask(installation, act, ORDER if act == "launch" else "one")
    worker = installation.workers[0]
    worker.dies_at = point
    for _ in range(60):
        if not installation.survive(worker.turn, 0):
            break
        installation.wait(1)
    else:
        raise AssertionError(f"{point} was never reached")
    settle(installation)
    assert wrong(installation) == []
    assert one(installation).phase in (Phase.RUNNING, Phase.STOPPED, Phase.FAILED, Phase.GONE)
    ask(installation, "delete", one(installation).id)
    settle(installation)
    assert machines(installation) == []
    assert wrong(installation) == []


@pytest.mark.parametrize("cloud", CLOUDS)
@pytest.mark.parametrize("call", ["create", "stop", "delete"])
@pytest.mark.parametrize("when", [When.HALF, When.AFTER])
@pytest.mark.parametrize("kind", [Kind.ENGINE_DOWN, Kind.KILLED])
def test_lost_response_does_not_rent_twice(cloud: str, call: str, when: When, kind: Kind) -> None:
    installation = built(cloud)
    installation.sky_trouble.faults(SimulatedFault(call=call, when=when, kind=kind, times=2))
    ask(installation, "launch", ORDER)
    for _ in range(30):
        installation.survive(installation.workers[0].turn, 0)
        installation.wait(3)
    assert len(machines(installation)) <= 1
    settle(installation)
    assert wrong(installation) == []
    ask(installation, "delete", "one")
    for _ in range(10):
        installation.survive(installation.workers[0].turn, 0)
        installation.wait(3)
    settle(installation)
    assert machines(installation) == []


def test_a_launch_undone_before_its_machine_is_listed_leaves_nothing() -> None:
    """The response is lost, the launch fails, and the machine is listed only later: it is found and given
    back."""
    installation = built("late-without-tokens")
    installation.sky_trouble.faults(
        SimulatedFault(call="create", when=When.AFTER, kind=Kind.REFUSED),
        SimulatedFault(call="create", kind=Kind.REFUSED),
    )
    ask(installation, "launch", ORDER)
    installation.workers[0].turn()
    assert one(installation).phase == Phase.FAILED
    assert len(machines(installation)) == 1, "no listing can show it yet"
    settle(installation)
    assert machines(installation) == []
    assert wrong(installation) == []


def test_a_second_machine_is_given_back() -> None:
    """As if someone launched it with our label, or a cloud created two."""
    installation = built("prompt")
    launched(installation)
    (first,) = machines(installation)
    with installation.sky_world.write() as turn:
        turn.put(replace(first, remote_id="sim-999999"))
    installation.workers[0].look()
    assert [each.remote_id for each in machines(installation)] == [first.remote_id]
    assert one(installation).phase == Phase.RUNNING


# Capacity, quota, money, credentials


def test_region_without_capacity_is_skipped() -> None:
    installation = built("prompt")
    installation.sky_trouble.sold_out("east")
    ask(installation, "launch", ORDER)
    _work(installation)
    view = installation.service.view(installation.tenant.project.id, "one")
    assert (view.instance.phase, view.rented and view.rented.region) == (Phase.RUNNING, "west")
    assert wrong(installation) == []


def test_a_launch_that_fails_later_tries_the_next_region_and_pays_for_one() -> None:
    installation = built("prompt")
    installation.sky_trouble.faults(SimulatedFault(call="create", kind=Kind.LATER))
    ask(installation, "launch", ORDER)
    _work(installation)
    view = installation.service.view(installation.tenant.project.id, "one")
    assert (view.instance.phase, view.rented and view.rented.region) == (Phase.RUNNING, "west")
    assert len(machines(installation)) == 1


def test_launch_without_capacity_fails_with_a_reason() -> None:
    installation = built("prompt")
    installation.sky_trouble.sold_out("east", "west")
    ask(installation, "launch", ORDER)
    _work(installation)
    assert one(installation).phase == Phase.FAILED
    assert one(installation).problem
    assert machines(installation) == []


@pytest.mark.parametrize(
    ("trouble", "words"),
    [("quota", "has reached its limit"), ("money", "cannot pay")],
)
def test_quota_and_money_end_a_launch_at_once(trouble: str, words: str) -> None:
    """No other region is tried: the account is the same there."""
    installation = built("prompt")
    if trouble == "quota":
        installation.sky_trouble.quota(0)
    else:
        installation.sky_trouble.runs_out_of_money()
    ask(installation, "launch", ORDER)
    installation.workers[0].turn()
    assert one(installation).phase == Phase.FAILED
    assert words in one(installation).problem
    assert one(installation).candidate == 0


def test_bad_credentials_do_not_mark_machines_as_gone() -> None:
    installation = built("prompt")
    launched(installation)
    installation.sky_trouble.locked_out()
    for _ in range(100):
        installation.workers[0].beat()
        installation.workers[0].look()
        installation.wait(30)
    with installation.database.read() as tx:
        rows = tx.all("SELECT problem FROM site_state WHERE site = 'sky'")
    assert "credentials" in rows[0][0]
    assert one(installation).phase == Phase.RUNNING
    installation.sky_trouble.locked_out(is_so=False)
    settle(installation)
    assert one(installation).phase == Phase.RUNNING
    assert wrong(installation) == []
    with installation.database.read() as tx:
        assert tx.all("SELECT problem FROM site_state WHERE site = 'sky'") == [("",)]
        assert tx.all("SELECT COUNT(*) FROM ran_unwatched")[0][0] >= 1, (
            "the record shows that it kept running"
        )


def test_one_incomplete_listing_changes_nothing() -> None:
    installation = built("prompt")
    launched(installation)
    installation.wait(GRACE.total_seconds() + 1)
    (guest,) = machines(installation)
    with installation.sky_world.write() as turn:
        turn.remove(Guest, guest.key)
    installation.workers[0].look()
    with installation.sky_world.write() as turn:
        turn.put(guest)
    installation.workers[0].look()
    settle(installation)
    assert one(installation).phase == Phase.RUNNING


# Interruptions and the restart policy


@pytest.mark.parametrize("notice", [timedelta(0), timedelta(minutes=2)])
@pytest.mark.parametrize("policy", [None, *RestartPolicy])
def test_reclaimed_machine_follows_the_restart_policy(
    policy: RestartPolicy | None, notice: timedelta
) -> None:
    """Only the restart policy allows renting another machine."""
    installation = built("prompt")
    ask(installation, "launch", Order(name="one", site=SKY, type="gpu", mode="spot", restart_policy=policy))
    settle(installation)
    before = machines(installation)[0].remote_id
    installation.sky_trouble.taken_back(one(installation).id, installation.clock.now() + notice)
    installation.workers[0].look()
    if notice:
        assert "instance.leaving" in _kinds(installation)
    installation.wait(notice.total_seconds())
    settle(installation)
    after = [each.remote_id for each in machines(installation)]
    if policy in (None, RestartPolicy.NEVER):
        assert (one(installation).phase, after) == (Phase.FAILED, [])
        assert "lost" in one(installation).problem
    else:
        view = installation.service.view(installation.tenant.project.id, "one")
        region = "west" if policy == RestartPolicy.ELSEWHERE else "east"
        assert (view.instance.phase, view.rented and view.rented.region) == (Phase.RUNNING, region)
        assert len(after) == 1
        assert after != [before]
    assert wrong(installation) == []


def test_same_host_does_not_move_to_another_region() -> None:
    installation = built("prompt")
    ask(
        installation,
        "launch",
        Order(name="one", site=SKY, type="gpu", restart_policy=RestartPolicy.SAME_HOST),
    )
    settle(installation)
    installation.sky_trouble.sold_out("east")
    installation.sky_trouble.taken_back(one(installation).id, installation.clock.now())
    for _ in range(80):
        installation.workers[0].look()
        installation.workers[0].turn()
        installation.wait(2)
    assert one(installation).phase == Phase.FAILED
    assert machines(installation) == []


def test_outbid_machine_is_lost() -> None:
    installation = built("prompt")
    ask(
        installation,
        "launch",
        Order(name="one", site=SKY, type="gpu", mode="bid", bid_micros_per_hour=350_000),
    )
    settle(installation)
    assert one(installation).phase == Phase.RUNNING
    installation.sky_trouble.price_changes("gpu", "east", "bid", 400_000, installation.clock.now())
    settle(installation)
    assert (one(installation).phase, machines(installation)) == (Phase.FAILED, [])


def test_machine_cost_follows_its_price() -> None:
    installation = built("prompt")
    launched(installation)
    installation.sky_trouble.price_changes("gpu", "east", "on-demand", 1_100_000, installation.clock.now())
    installation.workers[0].look()
    installation.workers[0].look()
    with installation.database.read() as tx:
        (row,) = tx.all("SELECT cost_micros_per_hour, cost_currency FROM host WHERE kind = 'rented'")
        told = tx.all("SELECT COUNT(*) FROM event WHERE kind = 'instance.cost'")
    assert tuple(row) == (1_100_000, "USD")
    assert told[0][0] == 2, "once when it was rented, once when it changed"


@pytest.mark.parametrize("policy", RestartPolicy)
def test_an_own_instance_follows_its_policy_too(policy: RestartPolicy) -> None:
    installation = built("prompt")
    ask(installation, "launch", Order(name="one", restart_policy=policy))
    installation.settle()
    installation.trouble.stopped_by_hand(one(installation).id)
    installation.settle()
    never = policy == RestartPolicy.NEVER
    assert one(installation).phase == (Phase.STOPPED if never else Phase.RUNNING)
    installation.trouble.deleted_by_hand(one(installation).id)
    installation.settle()
    assert one(installation).phase == (Phase.FAILED if never else Phase.RUNNING)
    assert faults(installation.database, installation.world, installation.clock.now()) == []


def test_a_site_that_cannot_stop_ends_instances_by_deleting_them() -> None:
    installation = Installation.in_memory(START, sky=MemoryWorld(), capabilities=CLOUD - {Capability.STOP})
    launched(installation)
    with pytest.raises(Refused, match="does not support"):
        ask(installation, "stop", "one")
    ask(installation, "suspend", "one", "unpaid")
    settle(installation)
    assert (one(installation).phase, machines(installation)) == (Phase.GONE, [])
    ask(installation, "launch", Order(name="two", site=SKY, type="gpu", time_limit_seconds=60))
    settle(installation)
    installation.wait(90)
    settle(installation)
    assert machines(installation) == []
    ask(installation, "launch", Order(name="three", site=SKY, type="gpu"))
    settle(installation)
    installation.service.end(installation.tenant.actor, installation.tenant.project, "three")
    settle(installation)
    assert machines(installation) == []


def test_a_command_on_a_rented_machine_runs_and_is_read() -> None:
    installation = built("prompt")
    order = Order(name="one", site=SKY, type="gpu", access=Access.COMMAND, command=("echo", "hello"))
    ask(installation, "launch", order)
    settle(installation)
    log = installation.service.guests.log(installation.tenant.project.id, "one")
    assert (log.text, log.exit_code) == ("hello\n", 0)
    assert one(installation).phase == Phase.STOPPED


def test_an_engine_that_is_away_for_long_undoes_a_launch_and_leaves_nothing() -> None:
    installation = built("prompt")
    installation.sky_trouble.faults(SimulatedFault(call="create", kind=Kind.ENGINE_DOWN, times=FOREVER))
    ask(installation, "launch", ORDER)
    for _ in range(150):
        installation.workers[0].turn()
        installation.wait(5)
    assert one(installation).phase == Phase.FAILED
    assert machines(installation) == []


def _work(installation: Installation) -> None:
    """Like `settle`, without removing the faults."""
    for _ in range(60):
        installation.workers[0].turn()
        installation.workers[0].look()
        installation.wait(1)


def _kinds(installation: Installation) -> list[str]:
    with installation.database.read() as tx:
        return [row[0] for row in tx.all("SELECT kind FROM event ORDER BY id")]


def test_instance_without_restart_is_charged_until_found_stopped() -> None:
    installation = built("prompt")
    launched(installation)
    began = one(installation).running_since
    installation.wait(1000)
    installation.workers[0].look()
    installation.sky_trouble.stopped_by_hand(one(installation).id)
    installation.workers[0].look()
    found = installation.clock.now()
    settle(installation)
    assert one(installation).phase == Phase.STOPPED
    MeterService(installation.database, installation.clock).catch_up()
    with installation.database.read() as tx:
        rows = tx.all("SELECT from_us, until_us FROM meter_interval WHERE run_us IS NOT NULL")
    assert [tuple(row) for row in rows] == [(microseconds(began or found), microseconds(found))]


def test_disk_lost_during_an_outage_is_charged_until_last_listed() -> None:
    installation = built("prompt")
    stopped(installation)
    listed = installation.clock.now()
    installation.workers[0].look()
    installation.sky_trouble.deleted_by_hand(one(installation).id)
    installation.wait(5000)
    settle(installation)
    assert one(installation).phase == Phase.FAILED
    MeterService(installation.database, installation.clock).catch_up()
    with installation.database.read() as tx:
        rows = tx.all("SELECT until_us FROM meter_interval WHERE run_us IS NULL")
    assert [row[0] for row in rows] == [microseconds(listed)]


def test_site_without_exec_runs_no_commands_and_awaits_no_user_data() -> None:
    installation = Installation.in_memory(START, sky=MemoryWorld(), capabilities=CLOUD - {Capability.EXEC})
    with pytest.raises(BadInput, match="cannot run a command"):
        ask(installation, "launch", replace(ORDER, access=Access.COMMAND, command=("true",)))
    ask(installation, "launch", replace(ORDER, user_data="#!/bin/sh\ntrue\n"))
    settle(installation)
    assert (one(installation).phase, one(installation).user_data_waits) == (Phase.RUNNING, False)
    with pytest.raises(Refused, match="does not support"):
        installation.service.guests.run(installation.tenant.project.id, "one", ("true",))
