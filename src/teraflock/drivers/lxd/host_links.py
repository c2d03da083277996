"""Reads and sets the network links of this host."""

import contextlib
import subprocess
from collections.abc import Iterable, Iterator
from ipaddress import IPv4Interface

import msgspec

from teraflock.drivers.lxd import kernel, names


def attached() -> tuple[str, ...]:
    """Return the networks the host is attached to, except bridges: they contain other hosts and their
    management."""
    found = {
        str(address.network)
        for link, address in _addresses()
        if link != "lo" and not link.startswith(names.BRIDGE_PREFIX)
    }
    return tuple(sorted(found))


def own_addresses() -> frozenset[str]:
    """Return all addresses of the host."""
    return frozenset(str(address.ip) for _, address in _addresses())


def _addresses() -> Iterator[tuple[str, IPv4Interface]]:
    asked = ["ip", "-json", "-4", "address", "show"]
    done = subprocess.run(asked, capture_output=True, check=False)
    for link in msgspec.json.decode(done.stdout) if done.returncode == 0 else ():
        for each in link.get("addr_info", ()):
            yield link.get("ifname", "lo"), IPv4Interface(f"{each['local']}/{each['prefixlen']}")


def secure(bridges: Iterable[str]) -> bool:
    """Let bridges learn hardware addresses only from frames that they forward, which the guard has checked. From frames
    for their own protocols, a guest could make them believe that it has the address of another one."""
    lines = "".join(f"link set dev {each} type bridge no_linklocal_learn 1\n" for each in bridges)
    done = subprocess.run(
        ["ip", "-force", "-batch", "-"], input=lines.encode(), capture_output=True, check=False
    )
    return done.returncode == 0


def retry_soon(bridge: str) -> None:
    """Repeat requests for a guest that does not answer yet sooner than after one second."""
    for name, value in kernel.bridge_settings(bridge):
        with contextlib.suppress(OSError):  # optional: it only makes launches faster
            if (kernel.SYSTEM / name).read_text("ascii").strip() != str(value):
                (kernel.SYSTEM / name).write_text(f"{value}\n", "ascii")
