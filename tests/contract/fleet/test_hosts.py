"""The rows of hosts and cards: what a report changes, and what it must not change. On both databases."""

from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace

from teraflock.fleet import store
from teraflock.fleet.card import store as cards
from teraflock.fleet.model import (
    DiskLimits,
    Gpu,
    GpuKind,
    GpuReport,
    Host,
    HostCost,
    HostId,
    HostKind,
    HostReport,
    HostState,
)
from teraflock.fleet.port import store as ports
from teraflock.fleet.rented import store as rented
from teraflock.instance.driver import GRACE
from teraflock.storage.database import Database

START = datetime(2026, 11, 15, tzinfo=UTC)
ID = HostId("hst_1")
V100 = GpuReport(slot="0000:41:00.0", gpu="V100-SXM2", name="Tesla V100", memory_bytes=32 << 30)
T4 = GpuReport(slot="0000:42:00.0", gpu="T4", name="Tesla T4", memory_bytes=16 << 30)
REPORT = HostReport(
    name="one",
    address="192.0.2.1",
    vcpus=8,
    ram_bytes=64 << 30,
    disk_bytes=512 << 30,
    disk_used_bytes=5,
    disk_limits=DiskLimits.LOST,
    gpus=(V100, T4),
)


def put(database: Database, report: HostReport, *, minutes: int = 0, id: HostId = ID) -> bool:
    now = START + timedelta(minutes=minutes)
    return database.write(lambda tx: store.put_report(tx, "here", report, id, simulated=False, now=now))


def host(database: Database) -> Host:
    with database.read() as tx:
        found = store.host(tx, ID)
    assert found is not None
    return found


def test_a_report_registers_a_host_once(database: Database) -> None:
    assert put(database, REPORT)
    assert not put(database, REPORT, minutes=1, id=HostId("hst_2"))
    found = host(database)
    assert (found.kind, found.state, found.region, found.allow_out) == (
        HostKind.OWN,
        HostState.READY,
        "home",
        (),
    )
    assert (found.registered_at, found.seen_at) == (START, START + timedelta(minutes=1))
    assert (found.disk_used_bytes, found.disk_limits, found.cost) == (5, DiskLimits.LOST, None)
    assert [(card.slot, card.gpu, card.healthy) for card in found.gpus] == [
        (V100.slot, "V100-SXM2", True),
        (T4.slot, "T4", True),
    ]


@pytest.mark.parametrize("goes_away", [False, True])
@pytest.mark.parametrize("drained", [False, True])
def test_a_report_keeps_what_the_operator_set(database: Database, drained: bool, goes_away: bool) -> None:
    after = HostState.DRAINING if drained else HostState.READY
    put(database, REPORT)
    at = START + timedelta(hours=1) if drained else None
    database.write(lambda tx: store.set_drained(tx, ID, drained, drain_at=at))
    if goes_away:
        database.write(lambda tx: store.mark_away(tx, ID))
        assert host(database).state == HostState.AWAY
    database.write(lambda tx: store.set_region(tx, ID, "north"))
    database.write(lambda tx: store.set_allow_out(tx, ID, ("10.0.0.0/24", "10.1.0.0/24")))
    put(database, replace(REPORT, vcpus=16, address="192.0.2.2"), minutes=1)
    found = host(database)
    assert (found.state, found.drain_at) == (after, at)
    assert (found.region, found.allow_out) == ("north", ("10.0.0.0/24", "10.1.0.0/24"))
    assert (found.vcpus, found.address) == (16, "192.0.2.2")


def test_a_host_that_is_away_can_be_drained(database: Database) -> None:
    put(database, REPORT)
    database.write(lambda tx: store.mark_away(tx, ID))
    database.write(lambda tx: store.set_drained(tx, ID, True))
    assert host(database).state == HostState.AWAY
    put(database, REPORT, minutes=1)
    assert host(database).state == HostState.DRAINING
    database.write(lambda tx: store.mark_removed(tx, ID, START))
    put(database, REPORT, minutes=2)
    assert host(database).state == HostState.READY, "it joined again"


def test_a_report_keeps_the_holders_of_cards(database: Database) -> None:
    put(database, REPORT)
    taken = database.write(lambda tx: cards.take_gpus(tx, ID, "V100-SXM2", 1, "ins_1"))
    assert taken == [(V100.slot, "physical")]
    put(database, replace(REPORT, gpus=(replace(V100, name="renamed", healthy=False), T4)), minutes=1)
    held, free = host(database).gpus
    assert (held.instance_id, held.name, held.healthy, free.instance_id) == ("ins_1", "renamed", False, None)
    put(database, replace(REPORT, gpus=()), minutes=2)
    (held,) = host(database).gpus
    assert (held.instance_id, held.healthy) == ("ins_1", False), (
        "a card that is held stays until it is released"
    )
    with database.read() as tx:
        assert cards.held_by(tx, ["ins_1", "ins_2"]) == [("ins_1", V100.slot, GpuKind.PHYSICAL, "V100-SXM2")]
        assert cards.slots_by_instance(cards.held_on_site(tx, "here")) == {"ins_1": (V100.slot,)}
        assert cards.held_on_site(tx, "elsewhere") == []


def test_ports_are_listed_by_instance(database: Database) -> None:
    put(database, REPORT)
    for port, guest_port, instance in ((20_001, 22, "ins_2"), (20_003, 8888, "ins_1"), (20_002, 22, "ins_1")):
        database.write(lambda tx, to=(port, guest_port, instance): ports.take_port(tx, ID, *to))  # type: ignore[misc]
    with database.read() as tx:
        assert ports.held_by(tx, ["ins_1"]) == [("ins_1", 20_002, 22), ("ins_1", 20_003, 8888)]
        assert ports.taken_ports(tx, ID) == {20_001, 20_002, 20_003}


def test_every_field_of_a_rented_host_is_stored(database: Database) -> None:
    card = Gpu(
        slot="rented-0",
        kind=GpuKind.PHYSICAL,
        gpu="H100",
        name="H100",
        memory_bytes=80 << 30,
        healthy=True,
        instance_id=None,
    )
    written = Host(
        id=ID,
        site="sky",
        name="ins_1",
        state=HostState.READY,
        address="",
        vcpus=4,
        ram_bytes=8,
        disk_bytes=9,
        simulated=True,
        region="east",
        registered_at=START,
        seen_at=START,
        kind=HostKind.RENTED,
        type="gpu",
        gpus=(card,),
    )
    later = START + timedelta(seconds=5)
    cost = HostCost(micros_per_hour=900_000, currency="USD")
    database.write(lambda tx: rented.add_rented(tx, written))
    assert host(database) == written
    database.write(lambda tx: rented.note_token(tx, ID, "ins_1.1.0", START, grace=GRACE))
    database.write(lambda tx: rented.note_made(tx, ID, remote_id="i-7", zone="east-a", now=later))
    database.write(lambda tx: rented.set_cost(tx, ID, cost))
    known = replace(
        written,
        token="ins_1.1.0",
        token_at=START,
        remote_id="i-7",
        zone="east-a",
        made_at=later,
        seen_at=later,
        cost=cost,
    )
    assert host(database) == known
    database.write(lambda tx: rented.give_back(tx, ID, later))
    assert host(database) == replace(known, state=HostState.GONE, gone_at=later)


def test_places_name_only_the_hosts_that_are_wanted_apart(database: Database) -> None:
    for number in (1, 2, 3):
        put(database, replace(REPORT, name=f"h{number}"), id=HostId(f"hst_{number}"))
    database.write(lambda tx: store.set_region(tx, HostId("hst_3"), "north"))

    def places(gpus: int = 1, apart: tuple[str, ...] = (), **only: str) -> list[tuple[str, str]]:
        with database.read() as tx:
            return store.places(tx, "T4", gpus, apart=apart, **only)

    assert places() == [("", "home"), ("", "north")]
    assert places(apart=("hst_1", "hst_9")) == [("", "home"), ("", "north"), ("hst_1", "home")]
    assert places(apart=("hst_1",), host="h1") == [("hst_1", "home")]
    assert places(gpus=2) == []
