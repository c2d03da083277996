"""Which port of a host is taken for a published port. Pure."""

from collections.abc import Container
from typing import Final

from teraflock.base.errors import BadInput, Conflict, Refused
from teraflock.network.rules import PUBLISHED_FIRST, PUBLISHED_LAST

PER_PROJECT_MAX: Final = 200
"""Whatever the quota says: a host has fewer than 3,000 such ports, for all tenants together."""


def check_guest_port(port: int) -> None:
    if not 1 <= port <= 65_535:
        raise BadInput(f"Port `{port}` is out of range", hint="Ports are 1 to 65535")


def chosen(wanted: int | None, taken: Container[int]) -> int:
    """The port that is wanted, or the lowest free one."""
    if wanted is None:
        for port in range(PUBLISHED_FIRST, PUBLISHED_LAST + 1):
            if port not in taken:
                return port
        raise Refused("The host has no free port", hint="Unpublish ports that you no longer need")
    if not PUBLISHED_FIRST <= wanted <= PUBLISHED_LAST:
        raise BadInput(
            f"Port `{wanted}` of the host cannot be published",
            hint=f"Choose one from {PUBLISHED_FIRST} to {PUBLISHED_LAST}, or leave it out",
        )
    if wanted in taken:
        raise Conflict(f"Port {wanted} of the host is taken", hint="Choose another one, or leave it out")
    return wanted
