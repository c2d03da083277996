"""Measure security groups: 10,000 rules in 500 groups over 1,000 instances, in a database and in a real firewall.

The firewall is that of a network namespace. A change is measured from the request to the moment at which it holds: the
write to the database, the turn of the loop and the load. The transfer goes between two guests of one bridge, through
all rules and without them, in turns.
"""

import socket
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from time import perf_counter
from typing import Final

from tests.engine.namespaces import Namespaces, NoNamespaces, entered

from bench.figures import Figure, Section
from teraflock.base.clock import SystemClock
from teraflock.drivers.lxd import walls as tables
from teraflock.drivers.lxd.enforcing import Enforcing
from teraflock.drivers.opening import Opening
from teraflock.drivers.registry import open_site
from teraflock.image.service import ImageService
from teraflock.instance.engines import Engines
from teraflock.instance.orders import Order, ShapeWish
from teraflock.instance.service import InstanceService
from teraflock.network.security_group import store
from teraflock.network.security_group.model import Direction, GroupId, Protocol, Rule, SecurityGroup
from teraflock.network.security_group.service import SecurityGroupService
from teraflock.network.walls import Walls
from teraflock.reconcile.loops import Loops
from teraflock.reconcile.walls import WallLoop
from teraflock.storage.database import Transaction
from teraflock.storage.open import open_database
from teraflock.tenant.model import Project
from teraflock.tenant.service import TenantService

PROJECTS: Final = 5
GROUPS: Final = 100  # of each project
RULES: Final = 20  # of each group
INSTANCES: Final = 200  # of each project
PER_ORDER: Final = 100
TURNS: Final = 7
CHANGES: Final = 20
TABLE: Final = "tera_bench_walls"
BRIDGE: Final = "tfbench"
GUESTS: Final = ("10.255.1.16", "10.255.1.17")
STREAM_BYTES: Final = 1 << 30
PIECE: Final = bytes(1 << 18)
PORT: Final = 5201


def measure() -> Iterator[Section]:
    try:
        place = Namespaces(dict.fromkeys(GUESTS, BRIDGE))
    except (NoNamespaces, FileNotFoundError, AssertionError) as reason:
        yield Section(title="security groups", notes=(f"not measured: {reason}",))
        return
    try:
        with tempfile.TemporaryDirectory() as folder:
            bench = WallBench(Path(folder), place)
            yield bench.loading()
            yield bench.changing()
            yield bench.transferring()
            bench.close()
    finally:
        place.close()


class WallBench:
    def __init__(self, home: Path, place: Namespaces) -> None:
        clock = SystemClock()
        self._place = place
        self._database = open_database(f"sqlite:///{home / 'cloud.db'}", clock)
        tenants = TenantService(self._database, clock)
        mark = tenants.install().installation_id
        opening = Opening(
            name="simulated", options={"hosts": "50x8xV100"}, folder=home, mark=mark, clock=clock
        )
        self._engine = open_site("simulated", opening)
        engines = Engines([self._engine])
        self._loops = Loops(self._database, clock, engines, alone=True)
        instances = InstanceService(self._database, clock, engines)
        images = ImageService(self._database, clock, publish=instances.publish)
        self._actor = tenants.authenticate(tenants.operator_key().secret)
        for number in range(1, PROJECTS):
            tenants.projects.make(self._actor, f"project-{number}")
        self._projects = list(tenants.projects.page(self._actor, limit=PROJECTS))
        images.build(self._actor, self._projects[0], "base", "base")
        self._loops.hosts.turn()
        self._loops.images.turn()
        for project in self._projects:
            self._database.write(lambda tx, project=project: _fill(tx, project))  # type: ignore[misc]
            for part in range(INSTANCES // PER_ORDER):
                names = tuple(f"group-{number}" for number in range(part * 10, part * 10 + 2))
                order = Order(instances=PER_ORDER, shape=ShapeWish(vcpus=1), security_groups=names)
                instances.launch(self._actor, project, order)
        self._database.write(self._spread)
        self._groups = SecurityGroupService(self._database, clock)
        self._enforcing = Enforcing(TABLE)
        with entered(place.host):
            assert self._enforcing.keep([BRIDGE])
        self._engine.enforce = self._enforce  # type: ignore[method-assign]

    def close(self) -> None:
        self._engine.enforce = lambda walls: None  # type: ignore[method-assign]
        self._database.close()

    def loading(self) -> Section:
        computed, loaded = [], []
        for _ in range(TURNS):
            loop = WallLoop(self._loops.around)
            began = perf_counter()
            with self._database.read() as tx:
                (wanted,) = loop._wanted(tx).values()
            text = tables.full(TABLE, tables.compiled(wanted), [BRIDGE])
            computed.append(perf_counter() - began)
            fresh = Enforcing(TABLE)
            fresh._bridges = (BRIDGE,)
            with entered(self._place.host):
                began = perf_counter()
                fresh.load(wanted)
                loaded.append(perf_counter() - began)
        rules = sum(map(len, wanted.groups.values()))
        return Section(
            title=f"security groups: {rules:,} rules, {len(wanted.groups)} groups, {len(wanted.stations):,} instances",
            figures=(
                Figure(what="compute from the database", unit="s", samples=tuple(computed), bar=1.0),
                Figure(what="compile and load everything", unit="s", samples=tuple(loaded), bar=2.0),
            ),
            notes=(f"the table is {len(text) >> 10} KiB of text",),
        )

    def changing(self) -> Section:
        loop = WallLoop(self._loops.around)
        loop.turn()  # the first turn of a process loads everything
        allow, revoke = self._change("allow"), self._change("revoke")
        taken: dict[str, list[float]] = {"allow": [], "revoke": [], "idle": []}
        for number in range(CHANGES):
            for name, change in (("allow", allow), ("revoke", revoke), ("idle", lambda number: None)):
                began = perf_counter()
                change(number)
                loop.turn()
                taken[name].append((perf_counter() - began) * 1000)
        return Section(
            title="one change until it holds",
            figures=(
                Figure(what="allow", unit="ms", samples=tuple(taken["allow"]), bar=200.0),
                Figure(what="revoke, with the cut", unit="ms", samples=tuple(taken["revoke"]), bar=200.0),
                Figure(what="a turn without changes", unit="ms", samples=tuple(taken["idle"])),
            ),
        )

    def _change(self, verb: str) -> Callable[[int], None]:
        project = self._projects[0]

        def change(number: int) -> None:
            port = str(30_000 + number)
            if verb == "allow":
                self._groups.allow(self._actor, project, "group-0", "in", "tcp", port, "10.0.0.0/8")
                return
            group = self._groups.show(project, "group-0")
            rule = next(each for each in group.rules if each.port_first == int(port))
            self._groups.revoke(self._actor, project, "group-0", rule.id)

        return change

    def transferring(self) -> Section:
        loaded = self._enforcing._loaded
        assert loaded is not None
        some = next(iter(loaded.walls.groups))
        open_rules = tuple(Rule(direction=way, protocol=Protocol.ANY, peer="0.0.0.0/0") for way in Direction)
        walls = Walls(
            groups={**loaded.walls.groups, GroupId("sgr_bench"): open_rules},
            stations={**loaded.walls.stations, **dict.fromkeys(GUESTS, (some, GroupId("sgr_bench")))},
        )
        rates: dict[str, list[float]] = {"with": [], "without": []}
        for _ in range(TURNS):
            with entered(self._place.host):
                self._enforcing.load(walls)
            rates["with"].append(self._rate())
            with entered(self._place.host):
                self._enforcing.drop()
            rates["without"].append(self._rate())
            with entered(self._place.host):
                self._enforcing.keep([BRIDGE])
        ratios = tuple(a / b for a, b in zip(rates["with"], rates["without"], strict=True))
        gigabits = ", ".join(f"{name} rules {max(each):.1f}" for name, each in rates.items())
        return Section(
            title="TCP stream between two guests",
            figures=(
                Figure(
                    what="rate with all rules ÷ without", unit="×", samples=ratios, bar=0.9, at_least=True
                ),
            ),
            notes=(f"best rates in Gbit/s: {gigabits}",),
        )

    def _rate(self) -> float:
        source, target = GUESTS
        server = self._place.opened(target, Protocol.TCP)
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        server.setblocking(True)
        server.bind((target, PORT))
        server.listen()
        client = self._place.opened(source, Protocol.TCP)
        client.settimeout(30)
        client.connect((target, PORT))
        taken, _ = server.accept()
        sender = threading.Thread(target=_send, args=(client,))
        began = perf_counter()
        sender.start()
        buffer = bytearray(len(PIECE))
        while taken.recv_into(buffer):
            pass
        seconds = perf_counter() - began
        sender.join()
        taken.close()
        server.close()
        return STREAM_BYTES * 8 / seconds / 1e9

    def _spread(self, tx: Transaction) -> None:
        """Give every instance three groups, so that all groups have members."""
        for project in self._projects:
            members = store.members(tx, project.id)
            names = {each.name: each.id for each in store.groups(tx, project.id, project.created_at)}
            for number, member in enumerate(members):
                for step in range(3):
                    group = names[f"group-{(number * 3 + step) % (GROUPS - 1)}"]
                    store.join(tx, group, [member.instance_id])

    def _enforce(self, walls: Walls) -> None:
        with entered(self._place.host):
            self._enforcing.load(walls)
            self._enforcing.cut(())


def _send(client: socket.socket) -> None:
    for _ in range(STREAM_BYTES // len(PIECE)):
        client.sendall(PIECE)
    client.close()


def _fill(tx: Transaction, project: Project) -> None:
    """The groups of a project: half of their rules name networks, a quarter name groups."""
    store.ensure_default(tx, project.id, project.created_at)
    suffix = project.id.partition("_")[2]
    for number in range(GROUPS - 1):
        id = GroupId(f"sgr_{suffix}x{number}")
        rules = [
            Rule(
                direction=Direction.OUT if port % 4 == 3 else Direction.IN,
                protocol=Protocol.TCP if port % 2 else Protocol.UDP,
                port_first=1000 + port,
                port_last=1000 + port + number,
                peer=f"sgr_{suffix}x{(number + port) % 99}" if port % 4 == 1 else f"10.{port}.{number}.0/24",
            )
            for port in range(RULES)
        ]
        name = f"group-{number}"
        group = SecurityGroup(
            id=id, project_id=project.id, name=name, created_at=project.created_at, rules=tuple(rules)
        )
        store.insert(tx, group)
