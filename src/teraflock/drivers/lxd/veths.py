"""Finds and removes virtual network links that a killed daemon left: created for a guest, but never attached
to it.

Both ends of a leftover link are on the host, and neither is in a bridge. Its names are those that LXD and
Incus assign, or ours for the host's end. A daemon that starts a guest has such a link for some milliseconds,
so callers check twice before they remove one.
"""

import re
import subprocess
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from teraflock.drivers.lxd.names import PORT_PREFIX

NAME: Final = re.compile(rf"veth[0-9a-f]{{8}}|{PORT_PREFIX}[0-9a-f]{{12}}")
SECONDS_MAX: Final = 10


def leftovers() -> dict[int, str]:
    """Return one end of each unused link: its number and name."""
    try:
        asked = subprocess.run(
            ["ip", "-json", "link", "show", "type", "veth"],
            capture_output=True,
            check=False,
            timeout=SECONDS_MAX,
        )
        links = msgspec.json.decode(asked.stdout or b"[]", type=list[dict[str, Any]])
    except (OSError, subprocess.TimeoutExpired, msgspec.MsgspecError):
        return {}
    return unused(links)


def unused(links: Sequence[Mapping[str, Any]]) -> dict[int, str]:
    """Return the first end of each unused pair in the output of `ip -json`."""
    by_name = {link.get("ifname", ""): link for link in links}
    found = {}
    for name, link in by_name.items():
        peer = by_name.get(link.get("link", ""))
        if (
            peer is not None
            and name < peer["ifname"]
            and _is_idle(link, name)
            and _is_idle(peer, peer["ifname"])
        ):
            found[int(link["ifindex"])] = name
    return found


def _is_idle(link: Mapping[str, Any], name: str) -> bool:
    """`link_netnsid` means that the other end is in a guest."""
    return bool(NAME.fullmatch(name)) and "master" not in link and "link_netnsid" not in link


def remove(name: str) -> bool:
    """Remove both ends of a link. Return whether it existed."""
    asked = ["ip", "link", "delete", name]
    return subprocess.run(asked, capture_output=True, check=False, timeout=SECONDS_MAX).returncode == 0


def remove_links(nics: Sequence[Mapping[str, str]]) -> bool:
    """Remove the host's ends of a guest's links that a killed engine left. Return whether one existed."""
    removed = [remove(port) for each in nics if (port := each.get("host_name"))]
    return any(removed)
