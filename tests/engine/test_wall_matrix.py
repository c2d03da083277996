"""A generated matrix of tenants, networks, groups, ACLs, directions and protocols, with IPv4 and with IPv6, each tried
with a real connection.

Every connection is tried before and after a live change, after a restart, and after `kill -9` in the middle of a load.
Meanwhile a prober tries connections between tenants, which no rules allow, all the time.
"""

import os
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping

import pytest
from tests.engine.namespaces import Namespaces, NoNamespaces, entered
from tests.unit.network.acl.test_rules import answered, crossed
from tests.unit.network.wall_samples import GROUPS, GUESTS, NETWORKS, PAIRS, PORTS, SIXES, may, packets

from teraflock.drivers.lxd.enforcing import Enforcing
from teraflock.network.acl.model import AclAction, AclRule
from teraflock.network.ipv6 import is_six
from teraflock.network.security_group.model import Direction, Protocol, Rule
from teraflock.network.walls import Borders, Packet, Walls, network_of

pytestmark = pytest.mark.long("thousands of connections")

BRIDGES = {f"10.128.{each}.0/20": f"tfmatrix{each}" for each in (0, 16, 32)}
TABLE = "tera_matrix_walls"
EVERY = packets()
KILLS = 8
PROBED = [
    Packet(each, ends[-1], Protocol.TCP, port)
    for ends in (GUESTS, SIXES)
    for each in ends[:-1]
    for port in PORTS
]
"""From all guests to that of the other tenant, the last one. Its network is peered with none. The others belong to one
tenant, with two networks that are peered at times."""


class Matrix:
    def __init__(self, place: Namespaces) -> None:
        self.place = place
        self.tried: Counter[tuple[str, bool]] = Counter()
        """Expectations that held, by family and by whether the connection is made."""
        place.listen(EVERY)

    def check(self, walls: Walls, kinds: tuple[Protocol, ...] = tuple(Protocol)) -> None:
        chosen = [each for each in EVERY if each.protocol in kinds]
        wanted = {each: passes(walls, each) for each in chosen}
        got = self.place.arrived(chosen)
        got |= self.place.arrived([each for each in chosen if wanted[each] and not got[each]])
        wrong = {each: got[each] for each in chosen if got[each] != wanted[each]}
        assert wrong == {}
        self.count(wanted)

    def count(self, held: Mapping[Packet, bool]) -> None:
        self.tried.update(
            ("IPv6" if is_six(each.source) else "IPv4", passes) for each, passes in held.items()
        )

    def load(self, walls: Walls, enforcing: Enforcing) -> None:
        with entered(self.place.host):
            enforcing.load(walls)
            enforcing.cut(())


def passes(walls: Walls, packet: Packet) -> bool:
    """By the slow evaluators, which share no code with the firewall. A datagram only has to arrive."""
    borders = walls.borders
    crosses = crossed(borders, packet) if packet.protocol == Protocol.UDP else answered(borders, packet)
    return may(walls, packet) and crosses


def generated(seed: int) -> Walls:
    """Walls with several groups for each guest, ACLs, and perhaps a peering."""
    chance = random.Random(seed)
    groups = {each: tuple(sorted({_rule(chance) for _ in range(6)})) for each in GROUPS}
    stations = {each: tuple(sorted(chance.sample(GROUPS, chance.choice([1, 2, 3])))) for each in GUESTS}
    subnets = ("10.128.0.0/20", "10.128.1.16/31", "10.128.16.0/20")
    borders: Borders = {each: _acl(chance) for each in subnets if chance.random() < 0.5}
    if borders and "10.128.0.0/20" not in borders:
        borders = {**borders, "10.128.0.0/20": None}
    return Walls(groups=groups, stations=stations, borders=borders, peers=frozenset(PAIRS[: seed % 2]))


def _rule(chance: random.Random) -> Rule:
    protocol = chance.choice((Protocol.ANY, Protocol.TCP, Protocol.UDP, Protocol.ICMP))
    peer = chance.choice((*NETWORKS, *GROUPS, "0.0.0.0/0", "0.0.0.0/0"))
    span = chance.choice(((0, 65_535), (22, 80), (80, 80), (1, 60)))
    first, last = span if protocol in (Protocol.TCP, Protocol.UDP) else (0, 65_535)
    way = chance.choice(list(Direction))
    return Rule(direction=way, protocol=protocol, port_first=first, port_last=last, peer=peer)


def _acl(chance: random.Random) -> tuple[AclRule, ...]:
    denied = chance.choice((Protocol.TCP, Protocol.UDP, Protocol.ICMP))
    deny = AclRule(
        direction=chance.choice(list(Direction)),
        number=10,
        action=AclAction.DENY,
        protocol=denied,
        peer=chance.choice(NETWORKS),
    )
    allow = [
        AclRule(direction=way, number=20, action=AclAction.ALLOW, protocol=Protocol.ANY, peer="0.0.0.0/0")
        for way in Direction
    ]
    return (deny, *allow)


@pytest.fixture(scope="module")
def matrix() -> Iterator[Matrix]:
    try:
        place = Namespaces({each: BRIDGES[network_of(each)] for each in GUESTS})
    except (NoNamespaces, FileNotFoundError, AssertionError) as reason:
        pytest.skip(str(reason))
    yield Matrix(place)
    place.close()


class Prober:
    """Tries forbidden connections until it is stopped."""

    def __init__(self, place: Namespaces) -> None:
        self.tries = 0
        self.passed: list[Packet] = []
        self._place = place
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def stop(self) -> None:
        self._ending.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._ending.is_set():
            sockets = [(each, self._place.opened(each.source, each.protocol)) for each in PROBED]
            for packet, used in sockets:
                used.connect_ex((packet.target, packet.port))
            time.sleep(0.01)
            for packet, used in sockets:
                if used.connect_ex((packet.target, packet.port)) in (0, 106):  # 106: connected
                    self.passed.append(packet)
                used.close()
            self.tries += len(PROBED)


def killed_in_a_load(place: Namespaces, walls: tuple[Walls, Walls], after: float) -> None:
    """A process that loads both walls in turns, as a whole and as changes, until it and its `nft` are killed."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.setsid()
        with entered(place.host):
            enforcing = Enforcing(TABLE)
            enforcing._bridges = tuple(BRIDGES.values())
            while True:
                for each in walls:
                    os.write(writing, b"x")
                    enforcing.load(each)
    os.read(reading, 1)
    time.sleep(after)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    os.close(reading)
    os.close(writing)


def test_every_connection_is_as_the_rules_say_through_changes_restarts_and_kills(matrix: Matrix) -> None:
    place = matrix.place
    enforcing = Enforcing(TABLE)
    with entered(place.host):
        assert enforcing.keep(BRIDGES.values())
    prober = Prober(place)
    try:
        for seed in range(4):
            matrix.load(generated(seed), enforcing)
            matrix.check(generated(seed))
        both = (generated(4), generated(5))
        assert any(passes(both[0], each) != passes(both[1], each) for each in EVERY)
        chance, last = random.Random(7), generated(3)
        for number in range(KILLS):
            killed_in_a_load(place, both, chance.uniform(0.0, 0.08))
            check_one_of(matrix, (last, *both))
            fresh, last = Enforcing(TABLE), both[number % 2]  # the next process
            fresh._bridges = tuple(BRIDGES.values())
            matrix.load(last, fresh)
            matrix.check(last)
    finally:
        prober.stop()
        with entered(place.host):
            enforcing.drop()
    for family in ("IPv4", "IPv6"):
        assert matrix.tried[family, True] >= 100
        assert matrix.tried[family, True] + matrix.tried[family, False] >= 500
    assert prober.tries > 1_000
    assert prober.passed == []


def check_one_of(matrix: Matrix, several: tuple[Walls, ...]) -> None:
    """A killed load left the walls from before or those from after, and no mixture."""
    chosen = [each for each in EVERY if each.protocol == Protocol.TCP]
    wanted = [{each: passes(walls, each) for each in chosen} for walls in several]
    got = matrix.place.arrived(chosen)
    missing = [each for each in chosen if not got[each] and any(one[each] for one in wanted)]
    got |= matrix.place.arrived(missing)
    assert got in wanted
    matrix.count(got)
