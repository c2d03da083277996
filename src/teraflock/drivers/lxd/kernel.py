"""Kernel settings of the host that guests need. They are raised if too low, and never lowered."""

import contextlib
from pathlib import Path
from typing import Final

import msgspec

SYSTEM: Final = Path("/proc/sys")

INOTIFY_INSTANCES_MIN: Final = 1 << 20
"""Linux allows 128 for all guests together, because root created their namespaces. With this value a guest
reaches its own memory limit first, so it cannot use up the instances of other guests."""
INOTIFY_WATCHES_MIN: Final = 1 << 22
PROCESS_IDS_MIN: Final = 1 << 22
"""The maximum of Linux. It is enough for a few hundred guests at their process limit; the default of 32,768
is enough for two."""
KEYS_MIN: Final = 20_000
"""Kernel keys per user. Each guest's session uses some of them."""
CONNECTIONS_MIN: Final = 1 << 20
"""Tracked connections of all guests, with 300 bytes each. Linux has 262,144. So 26 guests at their limit could use them
up, and then nobody on the host opens another one."""
FRAGMENT_BYTES_MIN: Final = 1 << 28
"""For pieces of datagrams that are not complete yet, of all guests. Linux has 4 MiB, which one guest could keep full.
The guard limits how many pieces a guest sends."""
NEIGHBOURS_MIN: Final = 1 << 20
"""Hardware addresses that the host and all guests remember, for each family. Linux has one table for all, of 1,024: one
guest could fill it, and then nobody finds a neighbour that it has not asked for yet. A full table takes half a GiB."""

RAISED: Final = {
    "fs/inotify/max_user_instances": INOTIFY_INSTANCES_MIN,
    "fs/inotify/max_user_watches": INOTIFY_WATCHES_MIN,
    "kernel/keys/maxkeys": KEYS_MIN,
    "kernel/pid_max": PROCESS_IDS_MIN,
    "net/ipv4/ipfrag_high_thresh": FRAGMENT_BYTES_MIN,
    "net/ipv4/neigh/default/gc_thresh2": NEIGHBOURS_MIN // 2,
    "net/ipv4/neigh/default/gc_thresh3": NEIGHBOURS_MIN,
    "net/ipv6/neigh/default/gc_thresh2": NEIGHBOURS_MIN // 2,
    "net/ipv6/neigh/default/gc_thresh3": NEIGHBOURS_MIN,
    "net/netfilter/nf_conntrack_frag6_high_thresh": FRAGMENT_BYTES_MIN,
    "net/netfilter/nf_conntrack_max": CONNECTIONS_MIN,
}

RETRY_MILLISECONDS: Final = 50
"""How soon a bridge asks again for an address that did not answer. The default of one second would be most of
a guest's boot time."""

BRIDGE_FILTERS: Final = ("net/bridge/bridge-nf-call-iptables", "net/bridge/bridge-nf-call-ip6tables")
"""Whether frames between two guests on one bridge pass through the firewall, with IPv4 and with IPv6."""
ROUTES_SIX: Final = "net/ipv6/conf/all/forwarding"
ROUTES_SIX_OF: Final = "net/ipv6/conf/{}/force_forwarding"
"""Whether the host routes IPv6 of all interfaces, or of one (since Linux 6.17). We never turn on the first: the host
would no longer listen to the router of its own uplink."""


def bridge_settings(bridge: str) -> tuple[tuple[str, int], ...]:
    """Return the settings for each of our bridges. The second lets the host reach its own open ports on
    127.0.0.1."""
    return (
        (f"net/ipv4/neigh/{bridge}/retrans_time_ms", RETRY_MILLISECONDS),
        (f"net/ipv4/conf/{bridge}/route_localnet", 1),
    )


def answers_for_itself(bridge: str) -> tuple[tuple[str, int], ...]:
    """Return the settings with which a bridge answers ARP about its own address only. Linux answers about all addresses
    of the host, also those of other networks."""
    return ((f"net/ipv4/conf/{bridge}/arp_ignore", 1),)


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """A setting that is too low."""

    name: str
    found: int | None
    needed: int


def too_low(system: Path = SYSTEM) -> tuple[Setting, ...]:
    """Return the settings to raise. A setting that this kernel does not have needs no change."""
    found = {name: _read(system / name) for name in RAISED}
    return tuple(
        Setting(name=name, found=value, needed=RAISED[name])
        for name, value in found.items()
        if value is not None and value < RAISED[name]
    )


def raise_limits(system: Path = SYSTEM) -> tuple[Setting, ...]:
    """Raise the settings that are too low. Return those that could not be raised."""
    for setting in too_low(system):
        try:
            (system / setting.name).write_text(f"{setting.needed}\n", "ascii")
        except OSError:
            continue  # the second check reports it: one setting that fails must not keep the others low
    return too_low(system)


def has_ipv6(system: Path = SYSTEM) -> bool:
    return (system / ROUTES_SIX).exists()


def can_route_ipv6(system: Path = SYSTEM) -> bool:
    """Whether IPv6 can pass between peered networks."""
    return _read(system / ROUTES_SIX) == 1 or (system / ROUTES_SIX_OF.format("all")).exists()


def six_settings(bridge: str, *, routes: bool) -> tuple[tuple[str, int], ...]:
    """Return the settings of a bridge that has an IPv6 address. The host believes nothing that guests announce."""
    inside = f"net/ipv6/conf/{bridge}"
    return (
        (f"{inside}/accept_ra", 0),
        (f"{inside}/autoconf", 0),
        (f"{inside}/accept_redirects", 0),
        (f"{inside}/accept_dad", 0),
        (f"{inside}/proxy_ndp", 0),
        (f"{inside}/disable_ipv6", 0),
        (ROUTES_SIX_OF.format(bridge), int(routes)),
    )


def filters_bridges(system: Path = SYSTEM) -> bool:
    return all(_read(system / each) == 1 for each in BRIDGE_FILTERS)


def filter_bridges(system: Path = SYSTEM) -> bool:
    """Turn the filter on. Return whether it is: without the module `br_netfilter` it cannot be."""
    for each in BRIDGE_FILTERS:
        if _read(system / each) == 0:
            with contextlib.suppress(OSError):
                (system / each).write_text("1\n", "ascii")
    return filters_bridges(system)


def _read(path: Path) -> int | None:
    try:
        return int(path.read_text("ascii").split()[0])
    except (OSError, ValueError, IndexError):
        return None
