"""The flood guard: limits how fast a guest opens connections and sends packets, as text for `nft -f`. Pure.

Each guest's address has its own limits in each direction: for packets, for the first packets of connections, and for
the connections that the host tracks at a time. What a guest asks the host itself, such as names, is limited by packet
like new connections: one flow of questions would keep the name server busy. What exceeds a limit is dropped before the
firewall sees it, so that one guest cannot fill the host's table of connections or use up its processors. Balancers have
addresses, too, and the same limits.
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
    """Per guest and direction. Of the rates, twice as many may come at once. 0: no limit."""

    connections_per_second: int = 2_000
    packets_per_second: int = 300_000
    connections_max: int = 10_000
    """At a time. Linux tracks 262,144 of all guests by default, and an idle one for five days. To count them, it looks
    at all of the guest's, so a much larger number would cost processor time."""


def table(name: str, bridges: Iterable[str], limits: FloodLimits, *, keep: bool = False) -> str:
    """Return the wanted table. `keep`: what was counted is kept, for limits that are the same as before."""
    listed = ", ".join(map(quoted, bridges))
    sets = "\n".join(
        (
            *(
                f"  set {each} {{ type ipv4_addr; size {SET_SIZE}; flags dynamic; timeout {KEPT_SECONDS}s; }}"
                for each in ("sent", "received", "opened", "accepted", "asked")
            ),
            *(
                f"  set {each} {{ type ipv4_addr; size {SET_SIZE}; flags dynamic; }}"
                for each in ("from", "to")
            ),
        )
    )
    sending, receiving = ("\n    ".join(_rules(side, limits)) for side in ("sending", "receiving"))
    asking = "\n    ".join(_asking(limits))
    start = "" if keep else remove(name)
    elements = f"add element inet {name} bridges {{ {listed} }}\n" if listed else ""
    chains = "".join(
        f"flush chain inet {name} {each}\n" for each in ("sending", "receiving", "through", "to_host")
    )
    return f"""{start}table inet {name} {{
  set bridges {{ type ifname; }}
{sets}
  chain sending {{ }}
  chain receiving {{ }}
  chain through {{ type filter hook forward priority {PRIORITY}; policy accept; }}
  chain to_host {{ type filter hook input priority {PRIORITY}; policy accept; }}
}}
{chains}flush set inet {name} bridges
{elements}table inet {name} {{
  chain sending {{
    {sending}
  }}
  chain receiving {{
    {receiving}
  }}
  chain through {{
    iifname @bridges jump sending
    oifname @bridges jump receiving
  }}
  chain to_host {{
    iifname @bridges jump sending
    {asking}
  }}
}}
"""


def remove(name: str) -> str:
    """Remove the table if it exists."""
    return f"table inet {name}\ndelete table inet {name}\n"


def _rules(side: str, limits: FloodLimits) -> Iterator[str]:
    end, packets, connections, held = (
        ("saddr", "sent", "opened", "from") if side == "sending" else ("daddr", "received", "accepted", "to")
    )
    if limits.packets_per_second:
        yield f"update @{packets} {{ ip {end} {_limit(limits.packets_per_second)} }} counter drop"
    if limits.connections_per_second:
        limit = _limit(limits.connections_per_second)
        yield f"{FIRST_PACKET} update @{connections} {{ ip {end} {limit} }} counter drop"
    if limits.connections_max:
        most = int(limits.connections_max)
        yield f"{FIRST_PACKET} add @{held} {{ ip {end} ct count over {most} }} counter drop"


def _asking(limits: FloodLimits) -> Iterator[str]:
    """Replies to what the host asks are not limited."""
    if limits.connections_per_second:
        limit = _limit(limits.connections_per_second)
        yield f"iifname @bridges ct direction original update @asked {{ ip saddr {limit} }} counter drop"


def _limit(per_second: int) -> str:
    return f"limit rate over {int(per_second)}/second burst {2 * int(per_second)} packets"
