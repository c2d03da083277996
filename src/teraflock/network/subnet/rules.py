"""Where a subnet is in its network. Pure."""

from collections.abc import Iterable
from ipaddress import IPv4Address, IPv4Network
from typing import Final

from teraflock.base.errors import BadInput, Conflict, Refused
from teraflock.network.model import DEFAULT, Layout
from teraflock.network.rules import FIRST_GUEST, PREFIX, is_reserved
from teraflock.network.security_group.rules import network_from

PREFIX_MAX: Final = 29
SUBNETS_MAX: Final = 64
"""In a network."""


def placed(layout: Layout, name: str, cidr: str, prefix: int | None, taken: Iterable[str]) -> IPv4Network:
    """The addresses of a new subnet: `cidr`, or the lowest free block of the size `prefix`. `taken`: by instances."""
    if name == DEFAULT:
        raise Conflict("Every network already has a subnet `default`", hint="Choose another name")
    if any(each.name == name for each in layout.subnets):
        raise Conflict(
            f"The network `{layout.network.name}` already has a subnet `{name}`", hint="Choose another name"
        )
    if len(layout.subnets) >= SUBNETS_MAX:
        raise Refused(f"A network can have at most {SUBNETS_MAX} subnets", hint="Delete one first")
    if bool(cidr) == (prefix is not None):
        raise BadInput(
            "A subnet needs its addresses or its size", hint="Add `--cidr NETWORK` or `--prefix 24`"
        )
    if ":" in cidr:
        raise BadInput(
            f"`{cidr[:40]}` is not an IPv4 network",
            hint="Write an IPv4 network. Its IPv6 addresses follow from it",
        )
    _check_size(IPv4Network(network_from(cidr)).prefixlen if cidr else prefix or 0)
    if prefix is not None:
        return _lowest(layout, prefix, [IPv4Address(each) for each in taken])
    return _given(layout, IPv4Network(network_from(cidr)), taken)


def _check_size(prefix: int) -> None:
    if not PREFIX < prefix <= PREFIX_MAX:
        raise BadInput(
            f"A subnet cannot be a /{prefix}",
            hint=f"Use /{PREFIX + 1} (2,048 addresses) to /{PREFIX_MAX} (8)",
        )


def _given(layout: Layout, wanted: IPv4Network, taken: Iterable[str]) -> IPv4Network:
    whole = layout.network.cidr
    if not wanted.subnet_of(whole):
        raise BadInput(
            f"{wanted} is not in the network `{layout.network.name}`", hint=f"The network has {whole}"
        )
    if int(wanted.broadcast_address) < int(whole.network_address) + FIRST_GUEST:
        raise BadInput(
            f"{wanted} has only reserved addresses",
            hint=f"The first address for an instance is {whole[FIRST_GUEST]}",
        )
    for each in layout.subnets:
        if wanted.overlaps(IPv4Network(each.cidr)):
            raise Conflict(
                f"{wanted} overlaps the subnet `{each.name}` ({each.cidr})",
                hint="Choose other addresses, or let `--prefix` choose them",
            )
    if used := [each for each in taken if IPv4Address(each) in wanted]:
        raise Conflict(
            f"An instance has the address {used[0]} in {wanted}",
            hint="Choose other addresses, or let `--prefix` choose them",
        )
    return wanted


def _lowest(layout: Layout, prefix: int, taken: list[IPv4Address]) -> IPv4Network:
    """Not a block that begins with reserved addresses."""
    others = [IPv4Network(each.cidr) for each in layout.subnets]
    for block in layout.network.cidr.subnets(new_prefix=prefix):
        if is_reserved(str(block[0])):
            continue
        if not any(map(block.overlaps, others)) and not any(each in block for each in taken):
            return block
    raise Refused(
        f"The network `{layout.network.name}` has no free block of this size",
        hint="Use a larger prefix, which is a smaller subnet, or another network",
    )
