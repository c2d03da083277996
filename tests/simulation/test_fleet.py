"""Hosts fail in every way: no instance runs twice, none is forgotten, no address twice, and the bill is proved."""

import os
from collections.abc import Callable
from datetime import timedelta

import pytest
from msgspec.structs import replace
from tests.long import sampled
from tests.simulation.fleet import Fleet
from tests.simulation.fleet_walk import CARD, live

from teraflock.drivers.simulated.faults import FOREVER, Kind, SimulatedFault, When
from teraflock.fleet.model import HostReport, HostState
from teraflock.instance.driver import Handle
from teraflock.instance.model import Instance, PlaceWish, RestartPolicy
from teraflock.instance.orders import ShapeWish
from teraflock.instance.states import Phase
from teraflock.meter import store as meter
from teraflock.reconcile.moving import MOVE_AFTER

ELSEWHERE = RestartPolicy.ELSEWHERE
NOTICED = 15.0
AWAY = 30.0


def launched(there: Fleet, name: str = "one", **order: object) -> Instance:
    there.launch(0, name=name, **{"shape": CARD, "restart_policy": ELSEWHERE, **order})
    there.pass_time(10)
    made = there.one(name)
    assert made.phase == Phase.RUNNING
    return made


def place(there: Fleet, instance: Instance) -> tuple[str, str]:
    host = there.all_hosts()[str(instance.host_id)]
    return host.site, host.name


def running_copies(there: Fleet, instance: Instance) -> set[tuple[str, str]]:
    return {(site, g.host) for site, g in there.guests() if g.machine.id == instance.id and g.running}


NONSENSE: dict[str, Callable[[HostReport], HostReport]] = {
    "too many processors": lambda true: replace(true, vcpus=2**63),
    "too much memory": lambda true: replace(true, ram_bytes=2**64 - 1),
    "a negative disk": lambda true: replace(true, disk_bytes=-(2**63) - 1),
    "one card twice": lambda true: replace(true, gpus=(*true.gpus, *true.gpus)),
    "a card of nothing": lambda true: replace(true, gpus=(replace(true.gpus[0], memory_bytes=2**63),)),
}
"""Reports that cannot be stored."""


@pytest.mark.parametrize("way", ["host", "site", "hangs", "fails", *NONSENSE])
def test_lost_host_is_noticed_and_charges_stop_at_the_last_sighting(way: str) -> None:
    there = Fleet()
    one = launched(there)
    site, host = place(there, one)
    seen_at = there.all_hosts()[str(one.host_id)].seen_at
    if way == "host":
        there.trouble[site].host_goes_away(host)
    elif way == "site":
        there.trouble[site].engine_goes_down()
    elif way == "fails":
        there.trouble[site].faults(SimulatedFault(call="hosts", kind=Kind.FAILED, times=FOREVER))
    elif way in NONSENSE:
        there.claims[site][host] = NONSENSE[way]
    else:
        there.slow.add(site)
    lost_at = there.clock.now()
    while there.all_hosts()[str(one.host_id)].state != HostState.AWAY:
        there.pass_time(5)
        assert there.clock.now() - lost_at <= timedelta(seconds=NOTICED)
    assert there.one("one").phase == Phase.AWAY
    there.pass_time(AWAY)
    there.bills.meter.catch_up()
    with there.database.read() as tx:
        *_, interval = [each for each in meter.intervals_of(tx, one.id) if each.run_us]
    assert interval.until_us <= int(seen_at.timestamp() * 1e6)
    there.settle()


@pytest.mark.parametrize("sites", [{"east": "2x2xV100"}, {"east": "1x2xV100", "west": "1x2xV100"}])
def test_partitioned_host_never_runs_a_second_copy_with_the_same_address(sites: dict[str, str]) -> None:
    there = Fleet(sites=sites)
    one = launched(there)
    site, host = place(there, one)
    there.trouble[site].host_goes_away(host)
    there.pass_time(MOVE_AFTER.total_seconds() - 10)
    assert running_copies(there, one) == {(site, host)}, "not before the host is lost for good"
    there.pass_time(60)
    moved = there.one("one")
    assert moved.phase == Phase.RUNNING
    assert moved.address != one.address
    assert len(running_copies(there, one)) == 2, "the partitioned host cannot be reached"
    other = launched(there, "two")
    assert other.address != one.address, "nobody gets the address of a copy that may still run"
    there.trouble[site].host_comes_back(host, rebooted=False)
    there.wait(5)
    there.survives(there._read_hosts)
    assert running_copies(there, one) == {place(there, moved)}, (
        "removed before anything else happens on the host"
    )
    there.settle()
    assert launched(there, "three").address == one.address, "the address is free again"


def test_host_lost_just_before_an_instance_moves_there_loses_nothing() -> None:
    """The move chooses a host that is gone already. Its launch there waits, and is then placed a third time."""
    there = Fleet(sites={"east": "3x2xV100"})
    one = launched(there)
    site, first = place(there, one)
    second, third = (host.name for host in there.all_hosts().values() if host.name != first)
    there.hosts_service.set_state(there.actor, third, HostState.DRAINING)
    there.trouble[site].host_goes_away(first)
    there.pass_time(MOVE_AFTER.total_seconds())
    there.trouble[site].host_goes_away(second)
    there.pass_time(5)
    assert (place(there, there.one("one")), there.one("one").phase) == ((site, second), Phase.STARTING)
    there.pass_time(MOVE_AFTER.total_seconds())
    assert there.one("one").phase == Phase.STARTING, "no host has room"
    there.hosts_service.set_state(there.actor, third, HostState.READY)
    there.pass_time(30)
    assert (place(there, there.one("one")), there.one("one").phase) == ((site, third), Phase.RUNNING)
    there.settle()
    assert running_copies(there, one) == {(site, third)}


def test_host_that_returns_while_an_instance_moves_away_is_fenced_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Another server moves it after this one has removed old copies from the host, and before it records the return."""
    there = Fleet(sites={"east": "2x2xV100"})
    one = launched(there)
    site, first = place(there, one)
    (second,) = (host.name for host in there.all_hosts().values() if host.name != first)
    there.hosts_service.set_state(there.actor, second, HostState.DRAINING)
    there.trouble[site].host_goes_away(first)
    there.pass_time(MOVE_AFTER.total_seconds() + 60)
    assert there.one("one").phase == Phase.AWAY, "no host has room"
    there.hosts_service.set_state(there.actor, second, HostState.READY)
    there.trouble[site].host_comes_back(first, rebooted=False)
    with monkeypatch.context() as patched:
        patched.setattr(there.hosts, "_allow_out", lambda *_: there.moves.turn())
        there.wait(5)
        there._read_hosts()
    assert there.all_hosts()[str(one.host_id)].state == HostState.AWAY
    there.pass_time(10)
    assert there.all_hosts()[str(one.host_id)].state == HostState.READY
    assert running_copies(there, one) == {(site, second)}
    there.settle()


def test_host_stays_away_while_its_old_copy_cannot_be_removed() -> None:
    there = Fleet()
    one = launched(there)
    site, host = place(there, one)
    there.trouble[site].host_goes_away(host)
    there.pass_time(MOVE_AFTER.total_seconds() + 60)
    there.trouble[site].faults(SimulatedFault(call="delete", kind=Kind.REFUSED, times=FOREVER))
    there.trouble[site].host_comes_back(host, rebooted=False)
    there.pass_time(30)
    assert there.all_hosts()[str(one.host_id)].state == HostState.AWAY
    there.hosts_service.set_state(there.actor, host, HostState.READY)
    assert there.all_hosts()[str(one.host_id)].state == HostState.AWAY, "an operator cannot change that"
    there.trouble[site].no_more_faults()
    there.pass_time(10)
    assert there.all_hosts()[str(one.host_id)].state == HostState.READY
    there.settle()


def test_instance_stopped_while_it_moves_still_starts_from_its_copy() -> None:
    there = Fleet(sites={"east": "1x2xV100", "west": "1x2xV100"})
    one = launched(there)
    site, host = place(there, one)
    there.engines.at(site).run(Handle(one.id, host), ("tee", "/kept"), stdin=b"kept", seconds_max=5)
    there.pass_time(300)  # a copy of its disk is made
    there.trouble[site].host_goes_away(host)
    there.pass_time(MOVE_AFTER.total_seconds() - 30)
    while there.one("one").host_id == one.host_id:
        there.wait(5)
        there.beat()
        there._read_hosts()
        there.moves.turn()
    there.service.stop(there.actor, there.projects[0], "one")
    there.pass_time(120)
    assert there.one("one").phase == Phase.STOPPED
    there.service.start(there.actor, there.projects[0], "one")
    there.pass_time(30)
    new_site, new_host = place(there, there.one("one"))
    read = there.engines.at(new_site).run(
        Handle(one.id, new_host), ("cat", "/kept"), stdin=b"", seconds_max=5
    )
    assert read.stdout == b"kept"
    there.settle()


def test_terms_of_a_launch_hold_when_it_is_moved() -> None:
    there = Fleet(sites={"east": "4x2xV100"})
    hosts = {host.name: host for host in there.all_hosts().values()}
    for name in list(hosts)[:2]:
        there.hosts_service.set_labels(there.actor, name, {"zone": "a"})
    one = launched(there, place=PlaceWish(on={"zone": "a"}))
    site, host = place(there, one)
    there.trouble[site].host_goes_away(host)
    there.pass_time(MOVE_AFTER.total_seconds() + 60)
    assert {place(there, there.one("one"))[1], host} == set(list(hosts)[:2])
    there.settle()


def test_instance_gets_neighbouring_cards() -> None:
    there = Fleet(sites={"east": "1x8xV100"})
    launched(there, "one")
    four = launched(there, "four", shape=ShapeWish(gpu="V100", gpus=4))
    assert [card.slot for card in four.held.gpus] == [f"0000:{place:02x}:00.0" for place in (5, 6, 7, 8)]


def test_drained_host_is_emptied_at_its_deadline() -> None:
    there = Fleet()
    one = launched(there)
    site, host = place(there, one)
    there.launch(name="stays", shape=CARD, host=host)
    there.pass_time(10)
    deadline = there.clock.now() + timedelta(minutes=2)
    there.hosts_service.set_state(there.actor, str(one.host_id), HostState.DRAINING, drain_at=deadline)
    there.pass_time(60)
    assert place(there, there.one("one")) == (site, host)
    assert "drains its host" in there.one("one").notice
    assert "drains" not in there.one("stays").notice
    there.pass_time(90)
    moved = there.one("one")
    assert (moved.phase, place(there, moved) != (site, host)) == (Phase.RUNNING, True)
    assert running_copies(there, one) == {place(there, moved)}
    assert place(there, there.one("stays")) == (site, host)
    there.settle()


PARTITIONS = [
    (call, when, kind)
    for call in ("hide", "stop", "pack_disk", "keep_image", "delete", "create", "start")
    for when in When
    for kind in (Kind.KILLED, Kind.ENGINE_DOWN, Kind.FAILED)
]


@pytest.mark.parametrize(("call", "when", "kind"), sampled(PARTITIONS, every=16, because="many places"))
@pytest.mark.parametrize("returns", [True, False])
def test_partition_in_the_middle_of_a_drain_loses_and_doubles_nothing(
    call: str, when: When, kind: Kind, returns: bool
) -> None:
    """A call fails or kills the server, and the drained host cannot be reached from then on, for a while or until its
    instances were created again elsewhere."""
    there = Fleet(sites={"east": "2x2xV100", "west": "1x2xV100"})
    made = [launched(there, name) for name in ("one", "two")]
    site, host = place(there, made[0])
    there.pass_time(150)  # a copy of each disk is made
    for trouble in there.trouble.values():
        trouble.faults(SimulatedFault(call=call, when=when, kind=kind))
    there.hosts_service.set_state(
        there.actor, str(made[0].host_id), HostState.DRAINING, drain_at=there.clock.now()
    )
    there.pass_time(5)
    there.trouble[site].host_goes_away(host)
    there.pass_time(60 if returns else MOVE_AFTER.total_seconds() + 60)
    there.trouble[site].host_comes_back(host, rebooted=False)
    there.pass_time(60)
    there.settle()
    assert there.all_hosts()[str(made[0].host_id)].state == HostState.DRAINING
    for each in made:
        found = there.one(each.name)
        assert (found.phase, place(there, found) != (site, host)) == (Phase.RUNNING, True)


SEEDS = int(os.environ.get("TERA_FLEET_SEEDS", "240"))
WALKS = sampled(range(SEEDS), every=SEEDS, because="seconds each")


@pytest.mark.parametrize("seed", WALKS)
def test_seeded_failures_lose_and_double_nothing(seed: int) -> None:
    live(seed)
