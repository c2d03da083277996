"""Which public addresses there are, and which is taken next. Pure."""

from collections.abc import Container, Iterator
from ipaddress import IPv4Network
from typing import Final

from teraflock.base.errors import BadInput, Conflict, Refused
from teraflock.network.rules import RANGE

PER_PROJECT_MAX: Final = 100
POOL_MAX: Final = 65_536


def pool_from(text: str) -> tuple[IPv4Network, ...]:
    """Parse the operator's pool: networks and addresses, separated by spaces or commas."""
    found = []
    for word in text.replace(",", " ").split():
        try:
            found.append(IPv4Network(word))
        except ValueError as error:
            raise BadInput(f"`{word[:40]}` is not a network of the address pool: {error}") from None
    for first, second in ((a, b) for a in found for b in found if a is not b):
        if first.overlaps(second):
            raise BadInput(f"The networks {first} and {second} of the address pool overlap")
    if sum(each.num_addresses for each in found) > POOL_MAX:
        raise BadInput(f"The address pool has more than {POOL_MAX} addresses")
    for each in found:
        if each.overlaps(RANGE):
            raise BadInput(f"The network {each} of the address pool is used for projects: {RANGE}")
    return tuple(found)


def addresses_of(pool: tuple[IPv4Network, ...]) -> Iterator[str]:
    """All addresses, in order. Of a network its first and last one, too: they are routed to hosts one by one."""
    for network in pool:
        yield from map(str, network)


def chosen(pool: tuple[IPv4Network, ...], taken: Container[str], wanted: str = "") -> str:
    """The address that is wanted, or the first free one."""
    if not pool:
        raise Refused(
            "This installation has no public addresses",
            hint="The operator can set `address_pool`. Published ports work without them: `tera publish`",
        )
    if wanted and (wanted in taken or wanted not in addresses_of(pool)):
        raise Conflict(f"The address `{wanted[:40]}` is not available", hint="Leave it out to get a free one")
    for address in (wanted,) if wanted else addresses_of(pool):
        if address not in taken:
            return address
    raise Refused("All public addresses are taken", hint="Release one that you no longer need")
