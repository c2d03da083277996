"""Counters for the traffic that guests send out of the host: writes text for `nft` and reads its output.
Pure.

The counters have their own table. The firewall's table is replaced as a whole, which would reset them.
Packets are counted as they leave the host, after every rule that may drop them and before their source
address is rewritten. They are counted by the guest's address, unless they go to one of our bridges or to an address of
guests, which is compared first because that is quicker. Traffic
between guests of a project is not counted, on one host or several, and neither are requests to the host
itself. Responses to clients that connect to an open port are counted.

Each element carries its instance and an epoch: an address may get a new owner, and after a reboot all
counters start at zero.
"""

from collections.abc import Iterable, Mapping
from ipaddress import IPv4Address
from typing import Any, Final

import msgspec

from teraflock.instance.driver import Sent
from teraflock.instance.model import InstanceId
from teraflock.network.rules import RANGE

SET: Final = "guests"


class Counter(msgspec.Struct, frozen=True):
    address: str
    instance_id: str
    epoch: str


def table(name: str, bridges: Iterable[str]) -> str:
    """Return the wanted table. Existing counters continue."""
    names = ", ".join(f'"{_word(bridge)}"' for bridge in bridges)
    return "\n".join(
        [
            f"table inet {name} {{",
            "  set bridges { type ifname; }",
            f"  set {SET} {{ type ipv4_addr; counter; }}",
            "  chain leaving { type filter hook postrouting priority filter; policy accept; }",
            "}",
            f"flush chain inet {name} leaving",
            f"flush set inet {name} bridges",
            *([f"add element inet {name} bridges {{ {names} }}"] if names else []),
            f"add rule inet {name} leaving ip daddr != {RANGE} oifname != @bridges ip saddr @{SET}",
            "",
        ]
    )


def begin(name: str, counter: Counter) -> str:
    """Create a counter. Fails if the address already has one."""
    comment = f"{_word(counter.instance_id)} {_word(counter.epoch)}"
    return f'create element inet {name} {SET} {{ {IPv4Address(counter.address)} comment "{comment}" }}\n'


def end(name: str, address: str) -> str:
    return f"delete element inet {name} {SET} {{ {IPv4Address(address)} }}\n"


def changes(name: str, found: Iterable[Counter], wanted: Mapping[str, str], epoch: str) -> str:
    """Return the commands that turn the counters found into those wanted, by address. Counters in both are
    kept."""
    there = {counter.address: counter.instance_id for counter in found}
    ends = [address for address, owner in there.items() if wanted.get(address) != owner]
    begins = [(address, owner) for address, owner in wanted.items() if there.get(address) != owner]
    texts = [end(name, address) for address in ends]
    return "".join([*texts, *(begin(name, Counter(address, owner, epoch)) for address, owner in begins)])


def listing(name: str) -> list[str]:
    return ["nft", "--json", "list", "set", "inet", name, SET]


def counters_from(answer: bytes) -> list[tuple[Counter, int]]:
    """Parse every counter with its bytes."""
    objects: list[dict[str, Any]] = msgspec.json.decode(answer)["nftables"]
    elements = [each for part in objects if "set" in part for each in part["set"].get("elem", ())]
    found = []
    for element in (each["elem"] for each in elements if isinstance(each, dict)):
        owner, _, epoch = str(element.get("comment", "")).partition(" ")
        if owner and epoch:
            found.append((Counter(element["val"], owner, epoch), int(element["counter"]["bytes"])))
    return found


def sent(counter: Counter, count: int) -> Sent:
    return Sent(instance_id=InstanceId(counter.instance_id), epoch=counter.epoch, bytes=count)


def _word(text: str) -> str:
    if not text.replace("_", "").replace("-", "").isalnum() or not text.isascii():
        raise ValueError(f"invalid characters for the firewall: {text!r}")
    return text
