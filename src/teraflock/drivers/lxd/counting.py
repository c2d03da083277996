"""The host's counters of what guests send out of the house, as text for `nft`, and read from its answers. Pure.

A table of its own, beside the firewall's: that one is replaced whole, and counters must not begin anew for it. It
counts where packets leave the host, behind all that may drop them and before their source is rewritten: by the guest's
address, unless they go to one of our bridges. So what guests of a project say to each other is not counted, on one host
or several, nor what they ask of the host itself; answers to whoever came in by an opened port are.

Each element bears the instance it counts for, and a word for its own life: an address may get another owner, and after
a reboot all begin anew.
"""

from collections.abc import Iterable, Mapping
from ipaddress import IPv4Address
from typing import Any, Final

import msgspec

from teraflock.instance.driver import Sent
from teraflock.instance.model import InstanceId

SET: Final = "guests"


class Counter(msgspec.Struct, frozen=True):
    address: str
    instance_id: str
    epoch: str


def table(name: str, bridges: Iterable[str]) -> str:
    """The table as it should be. Counters that are there already go on."""
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
            f"add rule inet {name} leaving oifname != @bridges ip saddr @{SET}",
            "",
        ]
    )


def begin(name: str, counter: Counter) -> str:
    """Refused where the address has a counter already."""
    said = f"{_word(counter.instance_id)} {_word(counter.epoch)}"
    return f'create element inet {name} {SET} {{ {IPv4Address(counter.address)} comment "{said}" }}\n'


def end(name: str, address: str) -> str:
    return f"delete element inet {name} {SET} {{ {IPv4Address(address)} }}\n"


def brought_to(name: str, found: Iterable[Counter], wanted: Mapping[str, str], epoch: str) -> str:
    """What makes of the counters that are there those that are wanted, by address: whoever has one keeps it."""
    there = {counter.address: counter.instance_id for counter in found}
    ends = [address for address, owner in there.items() if wanted.get(address) != owner]
    begins = [(address, owner) for address, owner in wanted.items() if there.get(address) != owner]
    texts = [end(name, address) for address in ends]
    return "".join([*texts, *(begin(name, Counter(address, owner, epoch)) for address, owner in begins)])


def listing(name: str) -> list[str]:
    return ["nft", "--json", "list", "set", "inet", name, SET]


def counters_from(answer: bytes) -> list[tuple[Counter, int]]:
    """Every counter with its bytes."""
    said: list[dict[str, Any]] = msgspec.json.decode(answer)["nftables"]
    elements = [each for part in said if "set" in part for each in part["set"].get("elem", ())]
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
        raise ValueError(f"not a word for the firewall: {text!r}")
    return text
