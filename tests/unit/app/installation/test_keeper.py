"""The keeper restarts our own engine when it dies, and nothing else."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from teraflock.app.installation.keeper import LEFT_OVER, PAUSE_SECONDS_MAX, STEADY, EngineKeeper, pause_after
from teraflock.app.installation.locking import alone
from teraflock.app.installation.places import Places
from teraflock.base.clock import FixedClock
from teraflock.base.errors import Unavailable
from teraflock.drivers.lxd.daemon import Daemon
from teraflock.drivers.lxd.names import Names
from teraflock.drivers.lxd.veths import unused
from teraflock.storage.events import newest_of_project
from teraflock.storage.open import open_database


class Engine(Daemon):
    """A daemon that dies and starts when the test says so."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.up, self.noted, self.starting, self.broken, self.starts = True, True, False, False, 0

    def was_started(self) -> bool:
        return self.noted

    def pid(self) -> int | None:
        return 1 if self.up or self.starting else None

    def ensure(self) -> None:
        self.starts += 1
        if self.broken:
            raise Unavailable("it does not start")
        self.up = True


class Case:
    def __init__(self, folder: Path) -> None:
        self.clock = FixedClock(datetime(2026, 1, 1, tzinfo=UTC))
        self.database = open_database(str(folder / "db"), self.clock)
        self.places = Places(folder / "home")
        self.engine = Engine(folder / "lxd")
        self.links: dict[int, str] = {}
        self.removed: list[str] = []
        self.keeper = EngineKeeper(
            self.places,
            self.database,
            self.clock,
            lambda count: bytes(count - 1) + bytes([self.engine.starts % 256]),
            self.engine,
            lambda: self.engine.up,
            lambda: self.links,
            self.removed.append,
        )

    def turn(self, seconds: float = 0) -> None:
        self.clock.move(timedelta(seconds=seconds))
        self.keeper.turn()

    def events(self) -> list[str]:
        with self.database.read() as tx:
            return [event.kind for event in newest_of_project(tx, "", None, limit=99)]


@pytest.fixture
def case(tmp_path: Path) -> Case:
    return Case(tmp_path)


def test_a_dead_engine_is_restarted_with_an_event(case: Case) -> None:
    case.turn()
    assert case.engine.starts == 0
    case.engine.up = False
    case.turn(1)
    assert (case.engine.up, case.engine.starts, case.events()) == (True, 1, ["engine.restarted"])


def test_a_stopped_or_starting_engine_is_not_restarted(case: Case) -> None:
    case.engine.up = case.engine.noted = False
    case.turn(1)
    case.engine.noted, case.engine.starting = True, True
    case.turn(1)
    assert (case.engine.starts, case.events()) == (0, [])


def test_nothing_is_restarted_while_up_or_down_runs(case: Case) -> None:
    case.engine.up = False
    with alone(case.places):
        case.turn(1)
        assert case.engine.starts == 0
    case.turn(1)
    assert case.engine.starts == 1


def test_pauses_grow_for_an_engine_that_does_not_stay_up(case: Case) -> None:
    case.engine.up, case.engine.broken = False, True
    for _ in range(100):
        case.turn(1)
    assert case.engine.starts == 7  # after 1, 2, 4, 8, 16 and 32 seconds
    assert set(case.events()) == {"engine.restart_failed"}
    case.engine.broken = False
    case.turn(PAUSE_SECONDS_MAX)
    assert case.engine.up
    case.turn(STEADY.total_seconds())
    case.engine.up = False
    case.turn(1)
    assert case.engine.up, "it was healthy, so there is no pause"


def test_a_crash_loop_is_slowed_down(case: Case) -> None:
    for _ in range(100):
        case.engine.up = False
        case.turn(1)
    assert case.engine.starts == 7


@given(st.integers(0, 1000))
def test_pauses_grow_up_to_a_limit(failures: int) -> None:
    assert timedelta(seconds=1) <= pause_after(failures) <= pause_after(failures + 1)
    assert pause_after(failures) <= timedelta(seconds=PAUSE_SECONDS_MAX)


def test_leftover_network_interfaces_are_removed_after_two_turns(case: Case) -> None:
    case.links = {7: "veth0000000a"}
    case.turn()
    assert case.removed == []
    case.links[8] = "veth0000000b"
    case.turn(LEFT_OVER.total_seconds())
    assert case.removed == ["veth0000000a"], "the other interface may belong to a starting guest"
    case.links = {8: "veth0000000b"}
    case.turn((STEADY + LEFT_OVER).total_seconds())
    assert case.removed == ["veth0000000a"], "long after a restart, nothing is removed"


def test_only_unused_interface_pairs_are_leftovers() -> None:
    def link(index: int, name: str, peer: str, **more: object) -> dict[str, object]:
        return {"ifindex": index, "ifname": name, "link": peer, **more}

    pair = [link(1, "veth0000000a", "veth0000000b"), link(2, "veth0000000b", "veth0000000a")]
    assert unused(pair) == {1: "veth0000000a"}
    port = Names("test01").port("10.128.0.16")
    assert unused([link(1, port, "veth0000000b"), link(2, "veth0000000b", port)]) == {1: port}, (
        "the name that we use"
    )
    assert unused([{**pair[0], "master": "tf0"}, pair[1]]) == {}
    assert unused([pair[0], {**pair[1], "link_netnsid": 0}]) == {}
    assert unused([pair[0]]) == {}, "the other end is in a guest"
    assert unused([link(1, "docker-a", "docker-b"), link(2, "docker-b", "docker-a")]) == {}
