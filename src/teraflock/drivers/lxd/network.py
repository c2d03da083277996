"""Applies bridges and the firewall on this host.

A network is one bridge (see `bridges.py`). Our tables (firewall, guard, counters) are rebuilt from what
the engine stores: bridges, guests, their ports, and the networks that the operator allowed, stored on our
project. Nothing else has to survive a reboot. Between rebuilds, single entries are added and removed under a
lock that all our processes on this host share.
"""

import contextlib
import fcntl
import logging
import secrets
import subprocess
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from teraflock.drivers.lxd import counting, firewall, flood, guard, guest, interfaces, kernel, names, nft
from teraflock.drivers.lxd.bridges import Bridges, EngineBridges
from teraflock.drivers.lxd.enforcing import Enforcing
from teraflock.drivers.lxd.firewall import Bridge, Forward, Rules
from teraflock.drivers.lxd.floating import HostAddresses
from teraflock.drivers.lxd.flood import FloodLimits
from teraflock.drivers.lxd.guard import Station
from teraflock.drivers.lxd.host_links import (
    attached,
    give_ipv6,
    have_ipv6,
    own_addresses,
    retry_soon,
    secure,
)
from teraflock.drivers.lxd.linking import Linking
from teraflock.drivers.lxd.links import HostLink
from teraflock.drivers.lxd.member_bridges import MemberBridges
from teraflock.drivers.lxd.names import Names
from teraflock.drivers.lxd.resolving import Named, NamedPlace, Resolving
from teraflock.drivers.lxd.rest import LxdClient
from teraflock.instance.driver import Machine, Network, Port, Sent
from teraflock.instance.engine_errors import EngineRefused
from teraflock.network.balancer.model import PREFIX as BALANCER_PREFIX
from teraflock.network.fabric import Fabric, WireKey
from teraflock.network.naming import KnownName
from teraflock.network.rules import CLOSED, gateway, subnet
from teraflock.network.walls import Walls, is_ours, network_of
from teraflock.tenant.model import ProjectId

LOG: Final = logging.getLogger("teraflock.lxd")
LOCKS: Final = Path("/run/lock")
FLOOD_LIMITS: Final = FloodLimits()
WIRES: Final = Path("/var/lib/teraflock/wire")
"""The key for links with other hosts."""
ALLOWED: Final = "user.teraflock.allow-out"
"""Key on our project: networks that the operator lets guests reach."""
PEERED: Final = "user.teraflock.peered"
"""The same for networks that are peered, such as `10.128.0.0/20-10.128.16.0/20`."""


class LxdNetworks:
    """The networks of one installation on this host."""

    def __init__(
        self,
        engine: LxdClient,
        ours: Names,
        *,
        way_out: bool,
        locks: Path = LOCKS,
        flood_limits: FloodLimits = FLOOD_LIMITS,
        wire_folder: Path = WIRES,
    ) -> None:
        self._engine = engine
        """Client for the `default` project."""
        self._ours = ours
        self._bridges: Bridges = (
            MemberBridges(ours) if ours.member else EngineBridges(engine, ours, way_out=way_out)
        )
        self._way_out = way_out
        self.flood_limits = flood_limits
        self._flood_loaded: FloodLimits | None = None
        """The limits that this process loaded last."""
        self._lock = locks / f"tera-{ours.installation}-firewall"
        self._resolving = Resolving(ours)
        self._walls = Enforcing(ours.walls_table)
        self._floating = HostAddresses(ours)
        self._linking = Linking(ours, wire_folder)
        self._mtu = 0
        """The largest packet of networks that are linked with other hosts. 0: no limit."""
        self._peered: tuple[str, ...] | None = None
        """The peerings that this process saw stored last."""
        self._known: tuple[Sequence[KnownName], set[str]] | None = None
        """The names that the server gave last, and the bridges at that time."""
        self._attached: tuple[str, ...] = ()
        """The host's own networks when the table was last built."""
        self._built: tuple[Bridge, ...] = ()
        """The bridges at that time."""
        self.balancer_addresses: Callable[[], Mapping[str, str]] = dict
        """Addresses in our networks that balancers have, with their ids."""

    def ensure(self, network: Network) -> None:
        """Create the network's bridge. The firewall covers it before any guest is attached."""
        bridge = Bridge(self._ours.bridge(network.key), network.gateway)
        dns = self._resolving.server_settings(bridge.name, network.project_id)
        if self._bridges.ensure(bridge, network, dns=dns, mtu=self._mtu):
            self.rebuild()  # before any guest is there
        retry_soon(bridge.name)

    def admit(self, machine: Machine) -> None:
        """Allow a guest to use its addresses and names, before it first starts."""
        self.admit_named(self._named(machine))
        self.count(machine.address, machine.id)

    def admit_named(self, named: Named) -> None:
        """Allow the use of the addresses of a guest or a balancer, and make its names known."""
        self._resolving.add(named)
        stations = self._stations(*(each.address for each in named.places))
        with self._alone():
            if not nft.run("".join(guard.admit(self._ours.guard_table, each) for each in stations)):
                self._rebuild()

    def _named(self, machine: Machine) -> Named:
        return Named(
            instance_id=machine.id,
            hostname=machine.hostname,
            domain=machine.network.domain,
            project=machine.network.project_id,
            places=tuple(
                NamedPlace(self._ours.bridge(each.network.key), each.network.name, each.address)
                for each in machine.nics
            ),
        )

    def dismiss(self, instance_id: str, addresses: Sequence[str], folders: Iterable[str]) -> None:
        """Undo `admit`. `folders` are the guest's bridges and its project, which have its names."""
        self.dismiss_named(instance_id, addresses, folders)
        self._count_no_more(instance_id)

    def dismiss_named(self, id: str, addresses: Sequence[str], folders: Iterable[str]) -> None:
        """Undo `admit_named`."""
        self._resolving.remove(folders, id)
        with self._alone():
            for each in self._stations(*addresses):  # perhaps removed already
                nft.run(guard.dismiss(self._ours.guard_table, each))

    def allow_out(self, networks: tuple[str, ...]) -> None:
        """Let guests reach these networks through the host, and no other closed networks."""
        self._keep(ALLOWED, networks)
        self.rebuild()

    def allowed_out(self) -> tuple[str, ...]:
        return self._kept(ALLOWED)

    def _keep(self, key: str, words: Iterable[str]) -> None:
        """Store words on our project of the engine."""
        with self._alone():
            found = self._engine.get("projects", self._ours.project)
            config = {**found["config"], key: " ".join(words)}  # LXD replaces the whole configuration
            body = {"config": config, "description": found["description"]}
            self._engine.put("projects", self._ours.project, body=body)

    def _kept(self, key: str) -> tuple[str, ...]:
        config = self._engine.get("projects", self._ours.project)["config"]
        return tuple(str(config.get(key, "")).split())

    def count(self, address: str, instance_id: str) -> None:
        """Start counting what a guest or a balancer sends out of the host, unless it is counted already."""
        with self._alone():
            new = counting.Counter(address, instance_id, secrets.token_hex(8))
            if nft.run(counting.begin(self._ours.counting_table, new)):
                return
            found = self._counters()
            wanted = {each.address: each.instance_id for each, _ in found} | {address: instance_id}
            self._bring_counters(found, wanted)

    def _count_no_more(self, instance_id: str) -> None:
        with self._alone():
            for counter, _ in self._counters():
                if counter.instance_id == instance_id:
                    nft.run(counting.end(self._ours.counting_table, counter.address))

    def sent(self) -> list[Sent]:
        """Return what each guest has sent out of the host. Empty if the table does not exist."""
        return [counting.sent(counter, count) for counter, count in self._counters()]

    def remove(self, network: Network) -> None:
        name = self._ours.bridge(network.key)
        self._bridges.remove(name)
        self._resolving.forget(name, network.project_id)
        self.rebuild()

    def open(self, address: str, ports: tuple[Port, ...]) -> None:
        """Forward the host's ports to the guest. Replaces earlier forwards of these ports."""
        forwards = [Forward(port.host_port, address, port.guest_port) for port in ports]
        if not forwards:
            return
        with self._alone():
            if not nft.run(firewall.open_ports(self._ours.table, forwards)):
                self._rebuild()

    def close(self, ports: tuple[Port, ...]) -> None:
        with self._alone():
            for port in ports:
                nft.run(firewall.close_ports(self._ours.table, [port.host_port]))  # already closed

    def rebuild(self) -> None:
        """Rebuild our tables from the engine's bridges and instances."""
        with self._alone():
            self._rebuild()

    def is_up_to_date(self) -> bool:
        """Check whether our tables exist and are up to date. After a reboot or `nft flush ruleset` they are
        not."""
        # One by one: of several, nft 1.0.6 finds only the last.
        exist = all(
            nft.run(f"list {each}\n")
            for each in (
                f"map inet {self._ours.table} opened",
                f"chain inet {self._ours.counting_table} leaving",
                f"chain bridge {self._ours.guard_table} entering",
                *(f"chain {each} {self._ours.guard_table} past_bridges" for each in guard.PAST_BRIDGES),
                f"chain inet {self._ours.flood_table} through",
            )
        )
        with self._alone():
            is_same = attached() == self._attached and self._walls.is_intact()
        is_same = is_same and have_ipv6(self._built)
        return exist and is_same and kernel.filters_bridges() and self._bridges.are_up()

    def enforce(self, walls: Walls) -> None:
        """Load the peerings and the security groups, then cut the connections that they forbid."""
        peered = tuple(sorted(f"{one}-{other}" for one, other in walls.peers))
        if peered != self._peered:
            if peered != self._kept(PEERED):
                self._keep(PEERED, peered)
                self.rebuild()
            self._peered = peered
        wanted = {each.public for each in walls.floating}
        with self._alone():
            # A public address leads to a guest before the host has it, and no longer has it when it leads nowhere.
            self._floating.keep_only(wanted)
            self._walls.load(walls)
            self._floating.add(wanted)
        self._walls.cut(own_addresses() - wanted)

    def wire(self) -> WireKey:
        return self._linking.key()

    def link(self, fabric: Fabric) -> None:
        """Link the bridges with those of other hosts. Bridges of peered networks are created if they are missing."""
        self._mtu = fabric.mtu
        there = {bridge.name for bridge in self.bridges()}
        for each in fabric.passed:
            if self._ours.bridge(each.key) not in there:
                self.ensure(network_of_key(each.key, each.network, each.project))
        with self._alone():
            self._linking.apply(fabric, (bridge.name for bridge in self.bridges()), self._limit_packets)

    def know(self, names: Sequence[KnownName]) -> None:
        """See `NamingDriver`."""
        bridges = {bridge.name for bridge in self.bridges()} if names else set()
        if (names, bridges) != self._known:
            self._resolving.know(names, self._ours)
            self._known = (names, bridges)

    def unlink(self) -> None:
        """Remove all links to other hosts. Does not need the engine."""
        with self._alone():
            self._linking.drop()

    def _limit_packets(self, link: HostLink) -> None:
        """Set the size of packets on a bridge, for guests that start later and for those that run."""
        self._bridges.limit(link.bridge, link.mtu)
        for each in self._engine.get("instances", recursion=2, project=self._ours.project):
            pid = (each.get("state") or {}).get("pid", 0)
            inside = [
                name
                for name, device in each["devices"].items()
                if interfaces.bridge_of(device) == link.bridge
            ]
            for name in inside if pid else ():
                self._inside(pid, "ip", "link", "set", name, "mtu", str(link.mtu))

    def _inside(self, pid: int, *command: str, stdin: str = "") -> None:
        """Run a command of the host in the network of a guest."""
        enter = ["nsenter", f"--target={int(pid)}", "--net", "--"]
        subprocess.run([*enter, *command], input=stdin.encode(), capture_output=True, check=False)

    def drop_firewall(self) -> None:
        with self._alone():
            nft.run(firewall.remove(self._ours.table))
            self._walls.drop()
            nft.run(firewall.remove(self._ours.counting_table))
            nft.run(guard.remove(self._ours.guard_table))
            nft.run(flood.remove(self._ours.flood_table))
            self._floating.keep_only(set())
            self._linking.drop()
            self._lock.unlink(missing_ok=True)

    def leave(self) -> None:
        """Remove everything from the host that the engine does not manage."""
        self.drop_firewall()
        self._resolving.leave()

    def bridges(self) -> tuple[Bridge, ...]:
        """Return all bridges of this installation."""
        return self._bridges.all()

    def remove_bridges(self) -> None:
        for bridge in self._bridges.all():
            self._bridges.remove(bridge.name)

    def _rebuild(self) -> None:
        if not kernel.filter_bridges():
            raise EngineRefused(
                "This host does not filter traffic between instances of one network",
                hint="`modprobe br_netfilter; sysctl net.bridge.bridge-nf-call-iptables=1`",
            )
        instances = self._engine.get("instances", recursion=1, project=self._ours.project)
        self._bridges.keep()
        bridges = self.bridges()
        stations = [
            station for each in instances for station in self._stations(*interfaces.addresses_of(each))
        ]
        balancers = self.balancer_addresses()
        stations += [station for address in balancers for station in self._stations(address)]
        rules = self._rules(bridges, instances)
        prefixes = (self._ours.port_prefix, self._ours.link_prefix)
        texts = (
            guard.table(self._ours.guard_table, prefixes, stations, self.flood_limits.packets_per_second),
            firewall.table(self._ours.table, rules),
            counting.table(self._ours.counting_table, (bridge.name for bridge in bridges)),
            flood.table(
                self._ours.flood_table,
                (bridge.name for bridge in bridges),
                self.flood_limits,
                keep=self._flood_loaded == self.flood_limits,
            ),
        )
        probe = self._ours.bridge(names.PROBE_PROJECT)
        walled = [bridge.name for bridge in bridges if bridge.name != probe]
        # First, so that a new bridge is never without walls.
        if not (self._walls.keep(walled) and all(map(nft.run, texts))):
            raise EngineRefused(
                "The host's firewall rejected our rules",
                hint="Install `nft` and make sure that root may use it",
            )
        if not secure(bridge.name for bridge in bridges):
            LOG.error("a bridge is missing, or learns addresses from frames that the guard does not see")
        give_ipv6(bridges, {name for pair in rules.peered for name in pair})
        self._built = bridges
        kernel.raise_limits()  # that of connections exists since the first rule about them
        self._flood_loaded = self.flood_limits
        counters = self._counters()
        there = {network_of(each.gateway) for each in bridges if is_ours(each.gateway)}
        kept = _of_balancers((counter for counter, _ in counters), there)
        self._bring_counters(counters, {**kept, **balancers, **dict(_counted(instances))})
        for each in instances:
            if kernel.has_ipv6() and interfaces.lacks_ipv6(each):
                self._give_ipv6(each)
            if found := interfaces.named_of(each):
                self._resolving.add(found)

    def _give_ipv6(self, found: dict[str, Any]) -> None:
        """Give a guest of an earlier version its IPv6 addresses, for its next start and at once if it runs."""
        commands = "\n".join(interfaces.ipv6_setup(*interfaces.addresses_of(found)))
        config = {interfaces.GATEWAY: f"{found['config'].get(interfaces.GATEWAY, '')}\n{commands}"}
        where = ("instances", found["name"])
        self._engine.patch(*where, body={"config": config}, project=self._ours.project)
        state = self._engine.get(*where, "state", project=self._ours.project)
        if state.get("pid", 0) > 0:
            self._inside(state["pid"], "ip", "-force", "-batch", "-", stdin=commands + "\n")

    def _rules(self, bridges: tuple[Bridge, ...], instances: list[dict[str, Any]]) -> Rules:
        self._attached = attached()
        return Rules(
            bridges=bridges,
            forwards=tuple(forward for each in instances for forward in _forwards(each)),
            way_out=self._way_out,
            translates=bool(self._ours.member),
            closed=(*CLOSED, *self._attached),
            allowed=self.allowed_out(),
            peered=self._peered_bridges(bridges),
        )

    def _peered_bridges(self, bridges: Iterable[Bridge]) -> tuple[tuple[str, str], ...]:
        """Return every two bridges on this host whose networks are peered."""
        by_network = {network_of(each.gateway): each.name for each in bridges if is_ours(each.gateway)}
        pairs = (word.split("-") for word in self._kept(PEERED))
        return tuple(
            (by_network[one], by_network[other])
            for one, other in pairs
            if one in by_network and other in by_network
        )

    def _stations(self, *addresses: str) -> list[Station]:
        """Return a guest's interfaces, the first one first."""
        return [
            Station(
                self._ours.port(address),
                names.hardware_address(self._ours.installation, address),
                address,
                is_inner=number > 0,
            )
            for number, address in enumerate(addresses)
        ]

    def _counters(self) -> list[tuple[counting.Counter, int]]:
        asked = counting.listing(self._ours.counting_table)
        done = subprocess.run(asked, capture_output=True, check=False)
        return counting.counters_from(done.stdout) if done.returncode == 0 else []

    def _bring_counters(self, found: list[tuple[counting.Counter, int]], wanted: dict[str, str]) -> None:
        there = [counter for counter, _ in found]
        text = counting.changes(self._ours.counting_table, there, wanted, secrets.token_hex(8))
        if text and not nft.run(text):
            LOG.error("cannot count what guests send: the firewall rejected the counters")

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        self._lock.parent.mkdir(exist_ok=True)  # missing on systems without an init
        with self._lock.open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield


def network_of_key(key: str, number: int, project: str, domain: str = "") -> Network:
    """The network that engines know by this key: its id, or that of its project."""
    return Network(
        project_id=ProjectId(project),
        number=number,
        subnet=str(subnet(number)),
        gateway=str(gateway(number)),
        domain=domain,
        id="" if key == project else key,
    )


def _forwards(instance: dict[str, Any]) -> Iterator[Forward]:
    address = interfaces.address_of(instance)
    for port in guest.ports_from(instance["config"].get(guest.PORTS, "")):
        yield Forward(port.host_port, address, port.guest_port)


def _of_balancers(counters: Iterable[counting.Counter], networks: Container[str]) -> dict[str, str]:
    """Return the counters of balancers, also of those that ended: they are read later. The counter goes with the
    network, or when its address gets another owner."""
    return {
        each.address: each.instance_id
        for each in counters
        if each.instance_id.startswith(f"{BALANCER_PREFIX}_") and network_of(each.address) in networks
    }


def _counted(instances: list[dict[str, Any]]) -> Iterator[tuple[str, str]]:
    """Return the addresses of our guests and the instance of each."""
    for each in instances:
        if address := interfaces.address_of(each):
            yield address, each["config"][guest.ID]
