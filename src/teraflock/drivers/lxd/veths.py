"""Pairs of virtual network cards that a killed daemon leaves behind: made for a guest, and never given to it.

A leftover pair has both ends on the host and neither in a bridge. Its names are those that LXD and Incus give, or the
one we give to the host's end. A daemon that is starting a guest has such a pair too, for some milliseconds: so whoever
removes them looks twice.
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
    """One end of each pair that nobody uses: its number and its name."""
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
    """Of links as `ip -json` lists them, the first end of every pair of which no end is in use."""
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
    """`link_netnsid` says that the other end is in a guest."""
    return bool(NAME.fullmatch(name)) and "master" not in link and "link_netnsid" not in link


def remove(name: str) -> bool:
    """Both ends: they go together. Whether there was one."""
    asked = ["ip", "link", "delete", name]
    return subprocess.run(asked, capture_output=True, check=False, timeout=SECONDS_MAX).returncode == 0
