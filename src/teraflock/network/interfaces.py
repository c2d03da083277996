"""Which networks, subnets and addresses a new instance gets. Pure."""

from collections.abc import Sequence, Set
from ipaddress import AddressValueError, IPv4Address, IPv4Network
from typing import Final

import msgspec

from teraflock.base.errors import BadInput, Conflict, unknown_name
from teraflock.network.model import DEFAULT, Interface, Layout
from teraflock.network.rules import free_addresses, is_reserved

INTERFACES_MAX: Final = 8


class InterfaceWish(msgspec.Struct, frozen=True, kw_only=True):
    """What a tenant asks for. All empty: one interface in the network `default`."""

    networks: tuple[str, ...] = ()
    """Names, one for each interface. Empty: the network of the address or subnet, or else `default`."""
    subnets: tuple[str, ...] = ()
    """`SUBNET`, or `NETWORK/SUBNET`. At most one for each network. A network without one uses its subnet `default`."""
    addresses: tuple[str, ...] = ()
    """At most one for each network. A network without one gives its lowest free address."""

    @property
    def uses_default(self) -> bool:
        return DEFAULT in self.networks or not (self.networks or self.subnets or self.addresses)


def interfaces(
    wish: InterfaceWish, layouts: Sequence[Layout], taken: Set[str], count: int
) -> list[tuple[Interface, ...]]:
    """The interfaces of each of `count` instances, the first network first."""
    if wish.addresses and count > 1:
        raise BadInput(
            "Only one instance can have an address", hint="Leave out `--address`, or launch one instance"
        )
    chosen = [_named(layouts, name) for name in _network_names(wish, layouts)]
    subnets = _subnets(wish, chosen)
    given = _given(wish, chosen, subnets, taken)
    columns = []
    for layout in chosen:
        network = layout.network
        if network.id in given:
            addresses = [given[network.id]]
        else:
            inside, without = _space(layout, subnets.get(network.id, DEFAULT))
            addresses = free_addresses(inside, taken, count, without)
        columns.append([Interface(network, address) for address in addresses])
    return list(zip(*columns, strict=True))


def other_addresses(layouts: Sequence[Layout], old: Sequence[str], taken: Set[str]) -> list[str]:
    """A free address for each old one, in the same subnet. For an instance that moves while its copy may still run."""
    found = []
    for text in old:
        address = IPv4Address(text)
        layout = next(each for each in layouts if address in each.network.cidr)
        inside = (each.name for each in layout.subnets if address in IPv4Network(each.cidr))
        space, without = _space(layout, next(inside, DEFAULT))
        found += free_addresses(space, taken, 1, without)
    return found


def _network_names(wish: InterfaceWish, layouts: Sequence[Layout]) -> tuple[str, ...]:
    names = wish.networks
    if not names:
        found = [_network_with(layouts, each) for each in wish.addresses]
        found += [network for each in wish.subnets if (network := each.rpartition("/")[0])]
        names = tuple(dict.fromkeys(found)) or (DEFAULT,)
    if len(names) > INTERFACES_MAX:
        raise BadInput(
            f"An instance can have at most {INTERFACES_MAX} interfaces", hint="Name fewer networks"
        )
    if twice := [name for name in names if names.count(name) > 1]:
        raise BadInput(
            f"The network `{twice[0]}` is named twice", hint="An instance has one interface in a network"
        )
    return names


def _named(layouts: Sequence[Layout], name: str) -> Layout:
    for layout in layouts:
        if name in (layout.network.name, layout.network.id):
            return layout
    names = [each.network.name for each in layouts]
    raise unknown_name("network", name[:80], names, see="`tera network list` lists them")


def _network_with(layouts: Sequence[Layout], text: str) -> str:
    address = _address(text)
    for layout in layouts:
        if address in layout.network.cidr:
            return layout.network.name
    raise BadInput(
        f"No network of the project has the address {text}",
        hint="`tera network list` shows their addresses",
    )


def _address(text: str) -> IPv4Address:
    try:
        return IPv4Address(text)
    except AddressValueError:
        raise BadInput(
            f"`{text[:40]}` is not an IPv4 address",
            hint="Write an address such as `10.128.0.20`. The IPv6 address follows from it",
        ) from None


def _subnets(wish: InterfaceWish, chosen: Sequence[Layout]) -> dict[str, str]:
    """The name of the subnet for each network that has one in the wish, by the network's id."""
    found: dict[str, str] = {}
    for word in wish.subnets:
        network, _, name = word.rpartition("/")
        fits = [
            each.network
            for each in chosen
            if network in ("", each.network.name)
            and name in (DEFAULT, *(subnet.name for subnet in each.subnets))
        ]
        if not fits:
            known = [subnet.name for each in chosen for subnet in each.subnets]
            raise unknown_name("subnet", word[:80], [*known, DEFAULT], see="`tera subnet list` lists them")
        if len(fits) > 1:
            raise BadInput(
                f"Several of these networks have a subnet `{name}`", hint=f"Write `{fits[0].name}/{name}`"
            )
        if fits[0].id in found:
            raise BadInput(
                f"Two subnets of the network `{fits[0].name}` are named",
                hint="An instance has one interface in a network",
            )
        found[fits[0].id] = name
    return found


def _given(
    wish: InterfaceWish, chosen: Sequence[Layout], subnets: dict[str, str], taken: Set[str]
) -> dict[str, str]:
    """The address for each network that has one in the wish, by the network's id."""
    found: dict[str, str] = {}
    for text in wish.addresses:
        address = _address(text)
        layout = next((each for each in chosen if address in each.network.cidr), None)
        if layout is None:
            shown = ", ".join(f"`{each.network.name}` has {each.network.cidr}" for each in chosen)
            raise BadInput(f"{text} is in none of the networks", hint=shown)
        if layout.network.id in found:
            raise BadInput(
                f"Two addresses of the network `{layout.network.name}` are given",
                hint="An instance has one interface in a network",
            )
        found[layout.network.id] = _checked(layout, subnets.get(layout.network.id), address, taken)
    return found


def _checked(layout: Layout, subnet: str | None, address: IPv4Address, taken: Set[str]) -> str:
    text = str(address)
    if is_reserved(text):
        raise BadInput(
            f"{text} is reserved", hint="The first 16 addresses and the last one of a network are reserved"
        )
    if subnet is not None and subnet != subnet_of(layout, text):
        raise BadInput(
            f"{text} is not in the subnet `{subnet}`",
            hint=f"It is in `{subnet_of(layout, text)}`. `tera subnet list` shows the addresses of each",
        )
    if text in taken:
        raise Conflict(f"Another instance has the address {text}", hint="Choose another, or leave it out")
    return text


def subnet_of(layout: Layout, address: str) -> str:
    """The name of the subnet that has an address of this network."""
    inside = (each.name for each in layout.subnets if IPv4Address(address) in IPv4Network(each.cidr))
    return next(inside, DEFAULT)


def _space(layout: Layout, subnet: str) -> tuple[IPv4Network, list[IPv4Network]]:
    """Where the addresses of a subnet are, and which parts of that belong to others."""
    parts = {each.name: IPv4Network(each.cidr) for each in layout.subnets}
    if subnet in parts:
        return parts[subnet], []
    return layout.network.cidr, list(parts.values())
