"""The flood guard: limits how fast a guest opens connections and sends packets, as text for `nft -f`. Pure.

Each guest's address has its own limit in each direction: for packets, and for the first packets of connections. What
exceeds it is dropped before the firewall sees it, so that one guest cannot fill the host's table of connections or use
up its processors. Balancers have addresses, too, and the same limits.
"""

from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from teraflock.drivers.lxd.words import quoted

SET_SIZE: Final = 65_536
KEPT_SECONDS: Final = 30
"""How long a limit remembers an address that sends nothing."""
PRIORITY: Final = -10
"""After connections are known, before all tables of ours."""

FIRST_PACKET: Final = "ct state new ct status ! confirmed"
"""Without a reply, all packets of a connection are `new`, but only the first one is not confirmed."""


class FloodLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Per guest and direction. Twice as many may come at once. 0: no limit."""

    connections_per_second: int = 2_000
    packets_per_second: int = 300_000


def table(name: str, bridges: Iterable[str], limits: FloodLimits) -> str:
    """Return the whole table, which replaces the existing one."""
    listed = ", ".join(map(quoted, bridges))
    bridge_set = f"elements = {{ {listed} }}" if listed else ""
    sets = "\n".join(
        f"  set {each} {{ type ipv4_addr; size {SET_SIZE}; flags dynamic; timeout {KEPT_SECONDS}s; }}"
        for each in ("sent", "received", "opened", "accepted")
    )
    sending, receiving = ("\n    ".join(_rules(side, limits)) for side in ("sending", "receiving"))
    return f"""table inet {name}
delete table inet {name}
table inet {name} {{
  set bridges {{
    type ifname
    {bridge_set}
  }}
{sets}
  chain sending {{
    {sending}
  }}
  chain receiving {{
    {receiving}
  }}
  chain through {{
    type filter hook forward priority {PRIORITY}; policy accept;
    iifname @bridges jump sending
    oifname @bridges jump receiving
  }}
  chain to_host {{
    type filter hook input priority {PRIORITY}; policy accept;
    iifname @bridges jump sending
  }}
}}
"""


def remove(name: str) -> str:
    """Remove the table if it exists."""
    return f"table inet {name}\ndelete table inet {name}\n"


def _rules(side: str, limits: FloodLimits) -> Iterator[str]:
    end, packets, connections = (
        ("saddr", "sent", "opened") if side == "sending" else ("daddr", "received", "accepted")
    )
    if limits.packets_per_second:
        yield f"update @{packets} {{ ip {end} {_limit(limits.packets_per_second)} }} counter drop"
    if limits.connections_per_second:
        limit = _limit(limits.connections_per_second)
        yield f"{FIRST_PACKET} update @{connections} {{ ip {end} {limit} }} counter drop"


def _limit(per_second: int) -> str:
    return f"limit rate over {int(per_second)}/second burst {2 * int(per_second)} packets"
