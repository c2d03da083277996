"""The flood guard: limits how fast a guest opens connections and sends packets, as text for `nft -f`. Pure.

Each guest's address has its own limits in each direction: for packets, for the first packets of connections, and for
the connections that the host tracks at a time. The guard limits the packets that a guest sends, because it has to find
each sender in a set (`guard.py`). What a guest asks the host itself, such as names, is limited by packet like new
connections: one flow of questions would keep the name server busy. What exceeds a limit is dropped before the firewall
sees it, so that one guest cannot fill the host's table of connections or use up its processors. Balancers have
addresses, too, and the same limits. So have IPv6 addresses.
"""

from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from teraflock.drivers.lxd.families import FAMILIES
from teraflock.drivers.lxd.words import quoted
from teraflock.network.rules import RANGE

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
    """At a time. A host tracks a million of all guests (`kernel.py`), and an idle one for five days. To count them, it
    looks at all of the guest's, so a much larger number would cost processor time."""


def table(name: str, bridges: Iterable[str], limits: FloodLimits, *, keep: bool = False) -> str:
    """Return the wanted table. `keep`: what was counted is kept, for limits that are the same as before."""
    listed = ", ".join(map(quoted, bridges))
    short, held = f"flags dynamic; timeout {KEPT_SECONDS}s;", "flags dynamic;"
    kinds = {
        **dict.fromkeys(("received", "opened", "accepted", "asked"), short),
        "from": held,
        "to": held,
    }
    lines = [
        *([] if keep else [remove(name)]),
        f"add table inet {name}",
        f"add set inet {name} bridges {{ type ifname; }}",
        f"flush set inet {name} bridges",
        *([f"add element inet {name} bridges {{ {listed} }}"] if listed else []),
        *(
            f"add set inet {name} {each}{family.suffix} {{ type {family.kind}; size {SET_SIZE}; {kind} }}"
            for each, kind in kinds.items()
            for family in FAMILIES
        ),
    ]
    for chain, rules in _rules(limits).items():
        hook = {"through": "forward", "to_host": "input"}.get(chain)
        base = f" {{ type filter hook {hook} priority {PRIORITY}; policy accept; }}" if hook else ""
        lines += [f"add chain inet {name} {chain}{base}", f"flush chain inet {name} {chain}"]
        lines += [f"add rule inet {name} {chain} {rule}" for rule in rules]
    return "\n".join(lines) + "\n"


def remove(name: str) -> str:
    """Remove the table if it exists."""
    return f"table inet {name}\ndelete table inet {name}\n"


def _rules(limits: FloodLimits) -> dict[str, tuple[str, ...]]:
    """The rules of each chain. Almost all packets are of open connections, so they get through few of them."""
    rate, packets = limits.connections_per_second, limits.packets_per_second
    return {
        "opening": (*_rate("opened", "saddr", rate), *_most("from", "saddr", limits)),
        "accepting": (*_rate("accepted", "daddr", rate), *_most("to", "daddr", limits)),
        "from_guest": (
            f"{FIRST_PACKET} jump opening",
            f"{FIRST_PACKET} oifname @bridges jump accepting",
        ),
        "from_outside": (*_rate("received", "daddr", packets), f"{FIRST_PACKET} jump accepting"),
        "through": (
            f"ip saddr != {RANGE} oifname @bridges iifname != @bridges goto from_outside",
            "ct state established accept",
            "iifname @bridges goto from_guest",
            "oifname @bridges goto from_outside",
        ),
        "to_host": (
            "iifname != @bridges accept",
            f"{FIRST_PACKET} jump opening",
            # Replies to what the host asks are not limited.
            *(f"ct direction original {each}" for each in _rate("asked", "saddr", rate)),
        ),
    }


def _rate(name: str, end: str, per_second: int) -> Iterator[str]:
    for each in FAMILIES if per_second else ():
        yield f"update @{name}{each.suffix} {{ {each.word} {end} {_limit(per_second)} }} counter drop"


def _most(name: str, end: str, limits: FloodLimits) -> Iterator[str]:
    most = f"ct count over {int(limits.connections_max)}"
    for each in FAMILIES if limits.connections_max else ():
        yield f"add @{name}{each.suffix} {{ {each.word} {end} {most} }} counter drop"


def _limit(per_second: int) -> str:
    return f"limit rate over {int(per_second)}/second burst {2 * int(per_second)} packets"
