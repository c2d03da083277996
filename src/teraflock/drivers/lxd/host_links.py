"""Reads and sets the network links of this host."""

import contextlib
import subprocess
from collections.abc import Collection, Iterable, Iterator
from ipaddress import IPv4Interface, IPv6Interface, ip_interface

import msgspec

from teraflock.drivers.lxd import kernel, names
from teraflock.drivers.lxd.families import SIX
from teraflock.drivers.lxd.firewall import Bridge
from teraflock.network.walls import is_ours


def attached() -> tuple[str, ...]:
    """Return the networks the host is attached to, except bridges: they contain other hosts and their
    management."""
    found = {
        str(address.network)
        for link, address in _addresses()
        if address.version == 4 and link != "lo" and not link.startswith(names.BRIDGE_PREFIX)
    }
    return tuple(sorted(found))


def own_addresses() -> frozenset[str]:
    """Return all addresses of the host."""
    return frozenset(str(address.ip) for _, address in _addresses())


def _addresses() -> Iterator[tuple[str, IPv4Interface | IPv6Interface]]:
    asked = ["ip", "-json", "address", "show"]
    done = subprocess.run(asked, capture_output=True, check=False)
    for link in msgspec.json.decode(done.stdout) if done.returncode == 0 else ():
        for each in link.get("addr_info", ()):
            if each.get("family") in ("inet", "inet6"):
                yield link.get("ifname", "lo"), ip_interface(f"{each['local']}/{each['prefixlen']}")


def have_ipv6(bridges: Iterable[Bridge]) -> bool:
    """Check whether every bridge has its IPv6 address, or this host has no IPv6 at all."""
    wanted = {SIX.address(each.gateway) for each in bridges if is_ours(each.gateway)}
    return not kernel.has_ipv6() or wanted <= own_addresses()


def give_ipv6(bridges: Iterable[Bridge], peered: Collection[str]) -> None:
    """Give bridges their IPv6 addresses. Only those of `peered` networks route it. The engine could do this, but it
    would announce itself as a router, too, and route IPv6 for the whole host."""
    if not kernel.has_ipv6():
        return
    lines = []
    for each in bridges:
        if is_ours(each.gateway):
            _set(kernel.six_settings(each.name, routes=each.name in peered))
            lines.append(f"address replace {SIX.address(each.gateway)}/{SIX.length} dev {each.name} nodad")
    text = "".join(f"{each}\n" for each in lines).encode()
    subprocess.run(["ip", "-force", "-batch", "-"], input=text, capture_output=True, check=False)


def secure(bridges: Iterable[str]) -> bool:
    """Let bridges learn hardware addresses only from frames that they forward, which the guard has checked. From frames
    for their own protocols, a guest could make them believe that it has the address of another one. And let them say
    nothing about other addresses of the host."""
    bridges = tuple(bridges)
    for each in bridges:
        _set(kernel.answers_for_itself(each))
    lines = "".join(f"link set dev {each} type bridge no_linklocal_learn 1\n" for each in bridges)
    done = subprocess.run(
        ["ip", "-force", "-batch", "-"], input=lines.encode(), capture_output=True, check=False
    )
    return done.returncode == 0


def retry_soon(bridge: str) -> None:
    """Repeat requests for a guest that does not answer yet sooner than after one second."""
    _set(kernel.bridge_settings(bridge))


def _set(settings: Iterable[tuple[str, int]]) -> None:
    for name, value in settings:
        with contextlib.suppress(OSError):  # optional: older kernels do not have all of them
            if (kernel.SYSTEM / name).read_text("ascii").strip() != str(value):
                (kernel.SYSTEM / name).write_text(f"{value}\n", "ascii")
