"""Settings of the host's kernel that guests need: raised where they are too low, never lowered."""

from pathlib import Path
from typing import Final

import msgspec

SYSTEM: Final = Path("/proc/sys")

INOTIFY_INSTANCES_MIN: Final = 1 << 20
"""Linux allows 128, and counts all guests together, for root made their namespaces. So many that a guest's own memory
limit stops it first: one guest cannot take them from the others."""
INOTIFY_WATCHES_MIN: Final = 1 << 22
PROCESS_IDS_MIN: Final = 1 << 22
"""All that Linux can have: a few hundred guests at their limit of processes, where the usual 32,768 are two."""
KEYS_MIN: Final = 20_000
"""Kernel keys of one user: each guest's session takes some of them."""

RAISED: Final = {
    "fs/inotify/max_user_instances": INOTIFY_INSTANCES_MIN,
    "fs/inotify/max_user_watches": INOTIFY_WATCHES_MIN,
    "kernel/keys/maxkeys": KEYS_MIN,
    "kernel/pid_max": PROCESS_IDS_MIN,
}

RETRY_MILLISECONDS: Final = 50
"""How soon a bridge asks again for an address that was silent. The usual second is most of a guest's boot."""

BRIDGE_FILTER: Final = "net/bridge/bridge-nf-call-iptables"
"""Whether frames between two guests of one bridge pass the firewall at all."""


def bridge_settings(bridge: str) -> tuple[tuple[str, int], ...]:
    """What is set on each of our bridges. The second lets the host reach its own opened ports by 127.0.0.1."""
    return (
        (f"net/ipv4/neigh/{bridge}/retrans_time_ms", RETRY_MILLISECONDS),
        (f"net/ipv4/conf/{bridge}/route_localnet", 1),
    )


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """A setting that is below what is needed."""

    name: str
    found: int | None
    needed: int


def too_low(system: Path = SYSTEM) -> tuple[Setting, ...]:
    """What is to be raised. A setting this kernel does not have needs no raising."""
    found = {name: _read(system / name) for name in RAISED}
    return tuple(
        Setting(name=name, found=value, needed=RAISED[name])
        for name, value in found.items()
        if value is not None and value < RAISED[name]
    )


def raise_limits(system: Path = SYSTEM) -> tuple[Setting, ...]:
    """Raise what is too low; gives back what could not be raised."""
    for setting in too_low(system):
        try:
            (system / setting.name).write_text(f"{setting.needed}\n", "ascii")
        except OSError:
            continue  # told by the second look: one setting that resists must not keep the others low
    return too_low(system)


def filters_bridges(system: Path = SYSTEM) -> bool:
    return _read(system / BRIDGE_FILTER) == 1


def _read(path: Path) -> int | None:
    try:
        return int(path.read_text("ascii").split()[0])
    except (OSError, ValueError, IndexError):
        return None
