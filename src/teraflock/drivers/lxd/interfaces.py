"""A guest's network interfaces and names, in the engine's configuration and back. Pure: knows these keys.

The image's templates write the guest's files from `user.*` keys.
"""

from collections.abc import Iterator, Mapping
from ipaddress import IPv4Interface
from typing import Any, Final

from teraflock.drivers.lxd import kernel, names
from teraflock.drivers.lxd.families import SIX
from teraflock.drivers.lxd.names import Names
from teraflock.drivers.lxd.resolving import Named, NamedPlace
from teraflock.instance.driver import Machine, Nic
from teraflock.network.ipv6 import RANGE6
from teraflock.network.rules import gateway, number_of
from teraflock.network.walls import is_ours

ID: Final = "user.teraflock.id"
ADDRESS: Final = "user.address"
MORE_ADDRESSES: Final = "user.teraflock.more-addresses"
"""Of the further interfaces, in their order."""
NETWORKS: Final = "user.teraflock.networks"
"""The names of the networks of all interfaces. Together with the project, they are part of its DNS names."""
PROJECT: Final = "user.teraflock.project"
GATEWAY: Final = "user.gateway"
"""The image's template puts it at the end of the commands that set up the network. More commands may follow it, so
images of all versions can have further interfaces."""
HOSTNAME: Final = "user.hostname"
DOMAIN: Final = "user.domain"


def settings(machine: Machine) -> dict[str, str]:
    length = IPv4Interface(machine.network.subnet).network.prefixlen
    return {
        HOSTNAME: machine.hostname,
        ADDRESS: f"{machine.address}/{length}",
        MORE_ADDRESSES: " ".join(each.address for each in machine.more_nics),
        NETWORKS: " ".join(each.network.name for each in machine.nics),
        PROJECT: machine.network.project_id,
        GATEWAY: _setup(machine),
        "user.dns": machine.network.gateway,
        DOMAIN: machine.network.domain,
    }


def nic(nic: Nic, name: str, ours: Names) -> dict[str, str]:
    return {
        "type": "nic",
        "name": name,
        **_attached(ours.bridge(nic.network.key), ours),
        "hwaddr": names.hardware_address(ours.installation, nic.address),
        # The firewall identifies a guest by its port name and checks everything the guest sends against it.
        "host_name": ours.port(nic.address),
    }


def _attached(bridge: str, ours: Names) -> dict[str, str]:
    """To a network of the engine, or to a bridge that is ours (see `bridges.py`)."""
    return {"nictype": "bridged", "parent": bridge} if ours.member else {"network": bridge}


def bridge_of(device: Mapping[str, str]) -> str:
    """Return the bridge of a guest's device. Empty: it is no interface in a network."""
    return device.get("network") or device.get("parent", "") if device.get("type") == "nic" else ""


def address_of(found: Mapping[str, Any]) -> str:
    """Return the address of a guest that has our id; empty for other containers."""
    config = found["config"]
    return str(config.get(ADDRESS, "")).partition("/")[0] if ID in config else ""


def addresses_of(found: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the addresses of all interfaces of a guest that has our id, the first one first."""
    return (address, *more_addresses_of(found)) if (address := address_of(found)) else ()


def nics_in(found: Mapping[str, Any]) -> list[Mapping[str, str]]:
    """Return the interfaces that a guest has in a network."""
    return [each for each in found["devices"].values() if bridge_of(each)]


def more_addresses_of(found: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the addresses of a guest's further interfaces."""
    return tuple(str(found["config"].get(MORE_ADDRESSES, "")).split())


def folders_of(found: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the folders that have a guest's names: its project and its bridges."""
    return (found["config"].get(PROJECT, ""), *map(bridge_of, nics_in(found)))


def lacks_ipv6(found: Mapping[str, Any]) -> bool:
    """Check whether a guest was created by an earlier version, which had no IPv6."""
    own = address_of(found)
    return is_ours(own) and SIX.address(own) not in found["config"].get(GATEWAY, "") if own else False


def named_of(found: Mapping[str, Any]) -> Named | None:
    """Return the names of a guest from the engine's record of it. None: it is not ours, or has no name."""
    config, devices = found["config"], found["devices"]
    addresses = (address_of(found), *more_addresses_of(found))
    bridges = [bridge_of(devices.get(f"eth{number}", {})) for number in range(len(addresses))]
    networks = config.get(NETWORKS, "").split() or [""]
    if not (config.get(HOSTNAME) and all(addresses) and all(bridges)):
        return None
    return Named(
        instance_id=config[ID],
        hostname=config[HOSTNAME],
        domain=config.get(DOMAIN, ""),
        project=config.get(PROJECT, ""),
        places=tuple(map(NamedPlace, bridges, networks, addresses)),
    )


def _setup(machine: Machine) -> str:
    """Return the gateway, and the commands that set up further interfaces, and IPv6 if the host has it.

    Each answers through its own gateway: the host accepts an address only from its own interface.
    """
    lines = [machine.network.gateway]
    for number, nic in enumerate(machine.more_nics, start=1):
        length, table = IPv4Interface(nic.network.subnet).network.prefixlen, 100 + number
        lines += [
            f"address replace {nic.address}/{length} dev eth{number}",
            f"link set eth{number} up",
            f"route replace default via {nic.network.gateway} dev eth{number} table {table}",
            f"rule add from {nic.address} table {table}",
        ]
    if kernel.has_ipv6() and is_ours(machine.address):
        lines += ipv6_setup(machine.address, *(each.address for each in machine.more_nics))
    return "\n".join(lines)


def ipv6_setup(*addresses: str) -> Iterator[str]:
    """The commands that give interfaces their IPv6 addresses. There is a way to networks of projects only: a guest that
    wants to reach the internet knows at once that it cannot, and uses IPv4. Further interfaces reach their own network
    only: a file of commands for `ip` cannot have rules by source for IPv6."""
    for number, address in enumerate(addresses):
        device = f"eth{number}"
        yield f"address replace {SIX.address(address)}/{SIX.length} dev {device} nodad"
        if number == 0:
            yield f"route replace {RANGE6} via {SIX.address(str(gateway(number_of(address))))} dev {device}"
