"""Measure security groups: 10,000 rules in 500 groups over 1,000 instances, in a database and in a real firewall.

The firewall is that of a network namespace. A change is measured from the request to the moment at which it holds: the
write to the database, the turn of the loop and the load. The transfer goes between two guests of one bridge, measured
by iperf3 in turns: with the engine's table and all of ours, with the engine's alone, and with none. LXD loads its table
for each bridge whose guests reach the internet; it tracks connections and translates addresses already.
"""

import contextlib
import json
import resource
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import median, quantiles
from time import perf_counter
from typing import Final, NamedTuple

from tests.engine.namespaces import Namespaces, NoNamespaces, entered

from bench.figures import Figure, Section
from teraflock.base.clock import SystemClock
from teraflock.drivers.lxd import counting, firewall, flood, guard
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
GROUPS: Final = 101  # of each project, with `default`
RULES: Final = 20  # of each group
INSTANCES: Final = 200  # of each project
PER_ORDER: Final = 100
TURNS: Final = 7
CHANGES: Final = 20
TABLE: Final = "tera_bench_walls"
BRIDGE: Final = "tfbench"
GUESTS: Final = ("10.255.1.16", "10.255.1.17")
OTHER_TABLES: Final = ("firewall", "flood", "guard", "counting")
STREAM_SECONDS: Final = 1
STREAMS: Final = 20
OURS, ENGINE, NONE = STATES = ("all rules", "the engine's", "no rules")
ENGINE_TABLE: Final = f"""table inet lxd {{
  chain pstrt.{BRIDGE} {{
    type nat hook postrouting priority srcnat; policy accept;
    ip saddr 10.255.1.0/24 ip daddr != 10.255.1.0/24 masquerade
  }}
  chain fwd.{BRIDGE} {{
    type filter hook forward priority filter; policy accept;
    ip version 4 oifname "{BRIDGE}" accept
    ip version 4 iifname "{BRIDGE}" accept
  }}
}}
"""
"""What LXD 5 loads for a bridge with `ipv4.nat`, without its chains for the host itself."""
PACKETS: Final = 10_000
PACKET_PORT: Final = 9000


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
        computed, loaded, worked = [], [], []
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
                began, before = perf_counter(), _processor_seconds()
                fresh.load(wanted)
                loaded.append(perf_counter() - began)
                worked.append(_processor_seconds() - before)
        rules = sum(map(len, wanted.groups.values()))
        return Section(
            title=f"security groups: {rules:,} rules, {len(wanted.groups)} groups, {len(wanted.stations):,} instances",
            figures=(
                Figure(what="compute from the database", unit="s", samples=tuple(computed), bar=1.0),
                Figure(what="compile and load everything", unit="s", samples=tuple(loaded), bar=2.0),
                Figure(what="the same, processor time", unit="s", samples=tuple(worked), bar=2.0),
            ),
            notes=(f"the table is {len(text) >> 10} KiB of text",),
        )

    def changing(self) -> Section:
        loop = WallLoop(self._loops.around)
        loop.turn()  # the first turn of a process loads everything
        allow, revoke = self._change("allow"), self._change("revoke")
        taken: dict[str, list[float]] = {"allow": [], "revoke": [], "idle": []}
        worked: dict[str, list[float]] = {"allow": [], "revoke": [], "idle": []}
        for number in range(CHANGES):
            for name, change in (("allow", allow), ("revoke", revoke), ("idle", lambda number: None)):
                began, before = perf_counter(), _processor_seconds()
                change(number)
                loop.turn()
                taken[name].append((perf_counter() - began) * 1000)
                worked[name].append((_processor_seconds() - before) * 1000)
        return Section(
            title="one change until it holds",
            figures=(
                Figure(what="allow", unit="ms", samples=tuple(taken["allow"]), bar=200.0),
                Figure(what="revoke, with the cut", unit="ms", samples=tuple(taken["revoke"]), bar=200.0),
                Figure(what="a turn without changes", unit="ms", samples=tuple(taken["idle"])),
                Figure(what="allow, processor time", unit="ms", samples=tuple(worked["allow"]), bar=200.0),
                Figure(what="revoke, processor time", unit="ms", samples=tuple(worked["revoke"]), bar=200.0),
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
        if not shutil.which("iperf3"):
            return Section(title="TCP stream between two guests", notes=("not measured: install iperf3",))
        found: dict[str, list[Stream]] = {state: [] for state in STATES}
        sent: dict[str, list[float]] = {state: [] for state in STATES}
        with self._receiver():
            for turn in range(STREAMS):
                # Which comes first changes, so that a machine that becomes slower or faster favours none.
                for state in STATES[turn % len(STATES) :] + STATES[: turn % len(STATES)]:
                    self._set_rules(walls, state)
                    found[state].append(self._stream())
                    sent[state].append(self._packet_cost())
        return _transfers(found, sent)

    def _set_rules(self, walls: Walls, state: str) -> None:
        """Load all tables, only that of the engine, or none."""
        with entered(self._place.host):
            if state == OURS:
                self._enforcing.keep([BRIDGE])
                self._enforcing.load(walls)
            else:
                self._enforcing.drop()
        text = self._other_tables() if state == OURS else _no_other_tables()
        text += "table inet lxd\ndelete table inet lxd\n" + ("" if state == NONE else ENGINE_TABLE)
        self._place.on_host("nft", "-f", "-", stdin=text)

    def _packet_cost(self) -> float:
        """In microseconds. The kernel takes a packet to its receiver in the time of the sender."""
        sender, receiver = (self._place.opened(each, Protocol.UDP) for each in GUESTS)
        with sender, receiver:
            sender.bind((GUESTS[0], PACKET_PORT))
            receiver.bind((GUESTS[1], PACKET_PORT))
            sender.setblocking(True)
            sender.connect((GUESTS[1], PACKET_PORT))
            for used, target in ((sender, GUESTS[1]), (receiver, GUESTS[0])):
                used.sendto(b"x", (target, PACKET_PORT))
                time.sleep(0.01)
            began = time.thread_time()
            for _ in range(PACKETS):
                sender.send(b"x")
            return (time.thread_time() - began) / PACKETS * 1e6

    @contextlib.contextmanager
    def _receiver(self) -> Iterator[None]:
        with entered(self._place.places[GUESTS[1]]):
            server = subprocess.Popen(["iperf3", "-s", "-B", GUESTS[1]], stdout=subprocess.DEVNULL)
        try:
            time.sleep(0.5)
            yield
        finally:
            server.kill()
            server.wait()

    def _stream(self) -> "Stream":
        with entered(self._place.places[GUESTS[0]]):
            command = ["iperf3", "-c", GUESTS[1], "-t", str(STREAM_SECONDS), "-J"]
            done = subprocess.run(command, capture_output=True, check=True)
        end = json.loads(done.stdout)["end"]
        gigabits, used = float(end["sum_received"]["bits_per_second"]) / 1e9, end["cpu_utilization_percent"]
        return Stream(gigabits, gigabits / (float(used["host_total"] + used["remote_total"]) / 100))

    def _other_tables(self) -> str:
        """All that a host has besides the security groups."""
        bridge = firewall.Bridge(BRIDGE, GUESTS[0].rsplit(".", 1)[0] + ".1")
        stations = [
            guard.Station(f"tg{number}", self._hardware(address), address)
            for number, address in enumerate(GUESTS)
        ]
        names = dict(zip(OTHER_TABLES, map(_name, OTHER_TABLES), strict=True))
        return "".join(
            (
                firewall.table(names["firewall"], firewall.Rules(bridges=(bridge,))),
                flood.table(names["flood"], [BRIDGE], flood.FloodLimits()),
                guard.table(names["guard"], ["tg"], stations, flood.FloodLimits().packets_per_second),
                counting.table(names["counting"], [BRIDGE]),
            )
        )

    def _hardware(self, address: str) -> str:
        with entered(self._place.places[address]):
            listed = subprocess.run(["ip", "-j", "link"], capture_output=True, check=True).stdout
        return next(str(each["address"]) for each in json.loads(listed) if each["link_type"] == "ether")

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


class Stream(NamedTuple):
    """What one transfer reached, and what it would with a processor of its own for both ends together."""

    gigabits: float
    per_processor_second: float


def _transfers(found: dict[str, list[Stream]], sent: dict[str, list[float]]) -> Section:
    def ratios(what: str, base: str) -> tuple[float, ...]:
        pairs = zip(found[OURS], found[base], strict=True)
        return tuple(getattr(one, what) / getattr(other, what) for one, other in pairs)

    rate, worked = ratios("gigabits", ENGINE), ratios("per_processor_second", ENGINE)
    strict = ratios("gigabits", NONE)
    middle = {state: median(each.gigabits for each in found[state]) for state in STATES}
    gigabits = ", ".join(f"{state} {each:.1f}" for state, each in middle.items())
    cost = ", ".join(f"{state} {median(each):.2f} µs" for state, each in sent.items())
    return Section(
        title="TCP stream between two guests, by iperf3",
        figures=(
            Figure(what="rate with our rules ÷ without", unit="×", samples=rate, bar=0.9, at_least=True),
            Figure(what="the same, per processor time", unit="×", samples=worked, bar=0.9, at_least=True),
            Figure(what="rate ÷ without any rules", unit="×", samples=strict, bar=0.9, at_least=True),
        ),
        notes=(
            f"rate: {spread(rate)}; per processor time: {spread(worked)}",
            f"without any rules, also not the engine's: {spread(strict)}",
            f"rates in Gbit/s, medians: {gigabits}",
            f"processor time to send a small packet of an open connection: {cost}",
            "our rules: security groups, firewall, flood guard, spoofing guard, counters",
        ),
    )


def _processor_seconds() -> float:
    """Of this process and of the `nft` that it ran. On a busy machine, this says more than the clock."""
    return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


def spread(samples: Sequence[float]) -> str:
    low, middle, high = quantiles(samples, n=4)
    return f"median {middle:.3f}, half of {len(samples)} between {low:.3f} and {high:.3f}"


def _name(part: str) -> str:
    return f"tera_bench_{part}"


def _no_other_tables() -> str:
    removing = {"firewall": firewall, "flood": flood, "guard": guard}
    texts = [module.remove(_name(part)) for part, module in removing.items()]
    counters = f"inet {_name('counting')}"
    return "".join((*texts, f"table {counters}\ndelete table {counters}\n"))


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
