"""Network namespaces for the balancers of a project: creates them, connects them to its bridge, and removes them.

A namespace has an interface for each balancer, with the hardware address that belongs to its address, as a guest would.
Packets leave through the interface of their source address, because the guard drops all others.
"""

import subprocess
from collections.abc import Sequence
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any, Final

import msgspec

from teraflock.drivers.lxd import kernel
from teraflock.drivers.lxd.families import FAMILIES, FOUR
from teraflock.instance.engine_errors import EngineRefused
from teraflock.network.ipv6 import RANGE6, is_six, six
from teraflock.network.rules import gateway, subnet

NAMESPACES: Final = Path("/run/netns")
SECONDS_MAX: Final = 10
_KERNEL: Final = {
    "ipv4/ip_unprivileged_port_start": 0,
    "ipv4/conf/all/arp_ignore": 1,
    "ipv4/conf/all/arp_announce": 2,
    "ipv4/conf/all/rp_filter": 0,
    "ipv4/conf/default/rp_filter": 0,
    "ipv6/conf/all/disable_ipv6": 0,
    "ipv6/conf/default/disable_ipv6": 0,
    "ipv6/conf/default/accept_ra": 0,
}


class Plug(msgspec.Struct, frozen=True, kw_only=True):
    """An interface of the namespace and its end on the host."""

    address: str
    port: str
    """The name of the host's end."""
    hardware: str

    @property
    def inner(self) -> str:
        return f"b{int(IPv4Address(self.address)):08x}"

    @property
    def table(self) -> int:
        """The routing table for packets from this address."""
        return 1000 + (int(IPv4Address(self.address)) & 0xFFFF)


def ensure(name: str) -> None:
    if not (NAMESPACES / name).exists():
        _ip("netns", "add", name)
    lines = " && ".join(
        f"if [ -e /proc/sys/net/{path} ]; then echo {value} > /proc/sys/net/{path}; fi"
        for path, value in _KERNEL.items()
    )
    _run([*enter(name), "sh", "-c", f"ip link set lo up && {lines}"])


def enter(name: str) -> list[str]:
    """The command that runs another one in a namespace."""
    return ["nsenter", f"--net={NAMESPACES / name}", "--"]


def connect(name: str, bridge: str, plug: Plug, number: int) -> None:
    """Add an interface in the network with this number. What an interrupted call left is removed first."""
    disconnect(plug.port)
    mtu = str(_link(bridge)["mtu"])
    peer = ("peer", "name", plug.inner, "mtu", mtu, "address", plug.hardware, "netns", name)
    _ip("link", "add", plug.port, "mtu", mtu, "type", "veth", *peer)
    _ip("link", "set", plug.port, "master", bridge, "up")
    _run(["ip", "-n", name, "link", "set", plug.inner, "up"])
    for family in FAMILIES if kernel.has_ipv6() else (FOUR,):
        own, gate = family.address(plug.address), family.address(str(gateway(number)))
        inside, beyond = family.network(str(subnet(number))), "default" if family is FOUR else str(RANGE6)
        way = f"dev {plug.inner} src {own} table {plug.table}"
        flags = "noprefixroute" if family is FOUR else "noprefixroute nodad"
        commands = (
            f"address add {own}/{family.length} dev {plug.inner} {flags}",
            f"route replace {inside} {way}",
            f"route replace {beyond} via {gate} {way}",
            f"rule add from {own} lookup {plug.table} priority 100",
        )
        ip = ["ip", "-6" if family.suffix else "-4", "-n", name]
        _run([*ip, "rule", "delete", "from", own], check=False)
        _run([*ip, "-batch", "-"], stdin="\n".join(commands) + "\n")


def disconnect(port: str) -> None:
    """Remove an interface with both its ends, if it exists."""
    _run(["ip", "link", "delete", port], check=False)


def connected(name: str, bridge: str) -> set[str]:
    """The IPv4 addresses of a namespace whose interfaces are up and in the bridge, and have an IPv6 address, too."""
    if not (NAMESPACES / name).exists():
        return set()
    in_bridge = {link.get("link_index") for link in _listed("link", "show", "master", bridge)}
    found = {
        each["local"]
        for link in _listed("-n", name, "address", "show")
        if link.get("ifindex") in in_bridge and "UP" in link.get("flags", ())
        for each in link.get("addr_info", ())
    }
    return {each for each in found if not is_six(each) and (six(each) in found or not kernel.has_ipv6())}


def processes(name: str) -> list[int]:
    """All processes in a namespace, in the order of their start."""
    if not (NAMESPACES / name).exists():
        return []
    found = _run(["ip", "netns", "pids", name], check=False).split()
    return sorted(map(int, found), key=_started)


def remove(name: str) -> None:
    if (NAMESPACES / name).exists():
        _ip("netns", "delete", name)


def names(prefix: str) -> list[str]:
    return sorted(path.name for path in NAMESPACES.glob(f"{prefix}*"))


def _started(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()[19])
    except OSError:
        return 0


def _link(name: str) -> dict[str, Any]:
    return _listed("link", "show", "dev", name)[0]


def _listed(*words: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = msgspec.json.decode(_run(["ip", "-json", *words], check=False) or b"[]")
    return found


def _ip(*words: str) -> None:
    _run(["ip", *words])


def _run(command: Sequence[str], *, stdin: str = "", check: bool = True) -> str:
    done = subprocess.run(
        command, input=stdin, capture_output=True, text=True, check=False, timeout=SECONDS_MAX
    )
    if check and done.returncode != 0:
        raise EngineRefused(
            "The host could not set up the network of a balancer",
            hint="The server's log has the reason",
            context={"command": " ".join(command), "reason": done.stderr[-500:]},
        )
    return done.stdout
