"""Bridges and the firewall, put into force on this host.

A project's network is one bridge with our tag; the firewall table is rebuilt whole from what the engine holds (bridges,
and the ports noted on instances), so that after a reboot nothing else has to be remembered. Between rebuilds single
ports are added and taken away, under a lock that all our processes on this host share.
"""

import contextlib
import fcntl
import logging
import secrets
import subprocess
from collections.abc import Iterator
from ipaddress import IPv4Network
from pathlib import Path
from typing import Any, Final

from teraflock.drivers.lxd import counting, firewall, guest, kernel, names
from teraflock.drivers.lxd.errors import EngineMissing, EngineTaken
from teraflock.drivers.lxd.firewall import Bridge, Forward, Rules
from teraflock.drivers.lxd.names import Names
from teraflock.drivers.lxd.rest import Client
from teraflock.drivers.lxd.setup import check_ours
from teraflock.instance.driver import EngineRefused, Network, Port, Sent

LOG: Final = logging.getLogger("teraflock.lxd")
LOCKS: Final = Path("/run/lock")


class Networks:
    """The networks of one installation on this host."""

    def __init__(self, engine: Client, ours: Names, *, way_out: bool, locks: Path = LOCKS) -> None:
        self._engine = engine
        """Speaks within `default`, where all bridges are."""
        self._ours = ours
        self._way_out = way_out
        self._lock = locks / f"tera-{ours.installation}-firewall"

    def ensure(self, network: Network) -> None:
        """The network's bridge, behind the firewall before any guest is on it."""
        bridge = Bridge(self._ours.bridge(network.project_id), network.gateway)
        try:
            check_ours(self._engine.get("networks", bridge.name), self._ours, f"network `{bridge.name}`")
        except EngineMissing:
            with contextlib.suppress(EngineTaken):  # another thread was faster
                self._engine.post("networks", body=self._body(bridge, network))
            self.rebuild()
        ask_soon(bridge.name)

    def count(self, address: str, instance_id: str) -> None:
        """Count from now on what the guest sends out of the house, unless that is counted already."""
        with self._alone():
            new = counting.Counter(address, instance_id, secrets.token_hex(8))
            if _nft(counting.begin(self._ours.counting_table, new)):
                return
            found = self._counters()
            wanted = {each.address: each.instance_id for each, _ in found} | {address: instance_id}
            self._bring_counters(found, wanted)

    def count_no_more(self, instance_id: str) -> None:
        with self._alone():
            for counter, _ in self._counters():
                if counter.instance_id == instance_id:
                    _nft(counting.end(self._ours.counting_table, counter.address))

    def sent(self) -> list[Sent]:
        """What each guest has sent out of the house. Empty where the table is not there."""
        return [counting.sent(counter, count) for counter, count in self._counters()]

    def remove(self, network: Network) -> None:
        name = self._ours.bridge(network.project_id)
        with contextlib.suppress(EngineMissing):
            check_ours(self._engine.get("networks", name), self._ours, f"network `{name}`")
            self._engine.delete("networks", name)
        self.rebuild()

    def open(self, address: str, ports: tuple[Port, ...]) -> None:
        """Lead the host's ports to the guest. Whatever led elsewhere does so no more."""
        forwards = [Forward(port.host_port, address, port.guest_port) for port in ports]
        if not forwards:
            return
        with self._alone():
            if not _nft(firewall.open_ports(self._ours.table, forwards)):
                self._rebuild()

    def close(self, ports: tuple[Port, ...]) -> None:
        with self._alone():
            for port in ports:
                _nft(firewall.close_ports(self._ours.table, [port.host_port]))  # closed already: as wanted

    def rebuild(self) -> None:
        """Replace the whole table by what the engine's bridges and instances say."""
        with self._alone():
            self._rebuild()

    def stands(self) -> bool:
        """Whether our tables are there: after a reboot they are not."""
        return _nft(
            f"list map inet {self._ours.table} opened\nlist chain inet {self._ours.counting_table} leaving\n"
        )

    def drop_firewall(self) -> None:
        with self._alone():
            _nft(firewall.remove(self._ours.table))
            _nft(firewall.remove(self._ours.counting_table))
            self._lock.unlink(missing_ok=True)

    def bridges(self) -> tuple[Bridge, ...]:
        """All bridges with our tag."""
        return tuple(
            Bridge(each["name"], each["config"]["ipv4.address"].partition("/")[0])
            for each in self._engine.get("networks", recursion=1)
            if each.get("managed") and each["config"].get(names.TAG) == self._ours.installation
        )

    def _rebuild(self) -> None:
        instances = self._engine.get("instances", recursion=1, project=self._ours.project)
        forwards = tuple(forward for each in instances for forward in _forwards(each))
        bridges = self.bridges()
        rules = Rules(bridges=bridges, forwards=forwards, way_out=self._way_out)
        counted = counting.table(self._ours.counting_table, (bridge.name for bridge in bridges))
        if not (_nft(firewall.table(self._ours.table, rules)) and _nft(counted)):
            raise EngineRefused(
                "The host's firewall did not take our rules",
                hint="`nft` must be installed, and root must be allowed to use it",
            )
        self._bring_counters(self._counters(), dict(_counted(instances)))

    def _counters(self) -> list[tuple[counting.Counter, int]]:
        asked = counting.listing(self._ours.counting_table)
        done = subprocess.run(asked, capture_output=True, check=False)
        return counting.counters_from(done.stdout) if done.returncode == 0 else []

    def _bring_counters(self, found: list[tuple[counting.Counter, int]], wanted: dict[str, str]) -> None:
        there = [counter for counter, _ in found]
        text = counting.brought_to(self._ours.counting_table, there, wanted, secrets.token_hex(8))
        if text and not _nft(text):
            LOG.error("what guests send cannot be counted: the firewall did not take the counters")

    def _body(self, bridge: Bridge, network: Network) -> dict[str, object]:
        length = IPv4Network(network.subnet).prefixlen
        return {
            "name": bridge.name,
            "type": "bridge",
            "description": "made by teraflock",
            "config": {
                "ipv4.address": f"{network.gateway}/{length}",
                "ipv4.dhcp": "false",  # addresses are fixed, and written into the guest before it starts
                "ipv4.nat": "true" if self._way_out else "false",
                "ipv6.address": "none",
                # Guests ask the gateway for names of the world. Incus runs no server for that where it keeps no names.
                "dns.mode": "managed" if self._engine.server() == "incus" else "none",
                names.TAG: self._ours.installation,
            },
        }

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        self._lock.parent.mkdir(exist_ok=True)  # a system without an init of its own may lack it
        with self._lock.open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield


def ask_soon(bridge: str) -> None:
    """Ask again soon for a guest that does not answer yet, instead of after a second."""
    for name, value in kernel.bridge_settings(bridge):
        with contextlib.suppress(OSError):  # a launch is slower without it, and works
            if (kernel.SYSTEM / name).read_text("ascii").strip() != str(value):
                (kernel.SYSTEM / name).write_text(f"{value}\n", "ascii")


def _forwards(instance: dict[str, Any]) -> Iterator[Forward]:
    address = instance["devices"].get("eth0", {}).get("ipv4.address", "")
    if not address:
        return
    for port in guest.ports_from(instance["config"].get(guest.PORTS, "")):
        yield Forward(port.host_port, address, port.guest_port)


def _counted(instances: list[dict[str, Any]]) -> Iterator[tuple[str, str]]:
    """The addresses of our guests, and whose they are."""
    for each in instances:
        address, id = each["devices"].get("eth0", {}).get("ipv4.address", ""), each["config"].get(guest.ID)
        if address and id:
            yield address, id


def _nft(text: str) -> bool:
    """Whether the kernel took it, all of it or nothing."""
    done = subprocess.run(["nft", "-f", "-"], input=text.encode(), capture_output=True, check=False)
    return done.returncode == 0
