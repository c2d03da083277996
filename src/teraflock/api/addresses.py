"""Client addresses: how they are grouped for limits, and which are trusted proxies."""

from functools import lru_cache
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from teraflock.base.errors import BadInput

Network = IPv4Network | IPv6Network


@lru_cache(maxsize=4096)
def source_of(address: str) -> str:
    """The key for per-address limits: an IPv4 address, or the first 64 bits of an IPv6 address.

    Clients can choose the other 64 bits freely.
    """
    try:
        ip = ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(ip, IPv6Address):
        if ip.ipv4_mapped:
            return str(ip.ipv4_mapped)
        return str(IPv6Network((int(ip) >> 64 << 64, 64)))
    return str(ip)


def networks_of(text: str) -> tuple[Network, ...]:
    """Parse addresses and networks, separated by commas or spaces: `127.0.0.1, 10.0.0.0/8`."""
    try:
        return tuple(ip_network(each) for each in text.replace(",", " ").split())
    except ValueError as error:
        raise BadInput(
            f"The setting `trusted_proxies` has something that is not an address: {error}",
            hint="Write addresses or networks, such as `127.0.0.1, 10.0.0.0/8`",
        ) from None
