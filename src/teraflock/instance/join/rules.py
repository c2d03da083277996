"""Decides whether a host may join. Pure."""

import re
from datetime import timedelta
from ipaddress import ip_address
from typing import Final

from teraflock.base.errors import BadInput, Conflict, Refused
from teraflock.base.limits import CARDS_MAX, PORT_MAX
from teraflock.base.names import check_place
from teraflock.instance.join.model import Invitation, JoinRequest, Surrounding

VALID_FOR: Final = timedelta(hours=1)
SKEW_MAX: Final = timedelta(minutes=2)
"""A clock that is five minutes off is refused, however long the request takes."""
_UUID: Final = re.compile(r"[A-Za-z0-9-]{1,80}")


def check_address(address: str) -> None:
    try:
        found = ip_address(address)
    except ValueError:
        raise BadInput(
            f"`{address[:60]}` is not an IP address", hint="Give the host's address, such as `192.168.10.7`"
        ) from None
    if found.is_multicast or found.is_unspecified:
        raise BadInput(f"`{address}` is not the address of a host")


def name_of(invitation: Invitation, request: JoinRequest) -> str:
    """The name that the operator chose, or the host's own name up to the first dot."""
    return invitation.name or request.hostname.partition(".")[0].lower()


def check(invitation: Invitation, request: JoinRequest, around: Surrounding) -> None:
    """Raise if the host may not join, with the reason."""
    if invitation.key_hash:
        raise Refused(
            f"This token was already used by `{invitation.host}`", hint="Get a new one with `tera host add`"
        )
    if around.now >= invitation.expires_at:
        raise Refused(
            f"This token expired at {invitation.expires_at:%Y-%m-%d %H:%M} UTC",
            hint="Get a new one with `tera host add`",
        )
    _check_machine(request, around)
    if not (request.encrypts or invitation.trusted_wire):
        raise Refused(
            "This host cannot encrypt the traffic between hosts: it has neither WireGuard nor `wireguard-go`",
            hint="Install `wireguard-tools` and `wireguard-go`. If all hosts share a wire that nobody else can"
            " reach, use `tera host add --trusted-wire`",
        )
    name = name_of(invitation, request)
    check_place(name, "a host")
    if name in around.names:
        raise Conflict(
            f"There is already a host or site `{name}`",
            hint="Choose another name: `tera host add --name NAME`",
        )
    for card in request.cards:
        if card in around.cards:
            raise Conflict(
                f"The GPU {card} already belongs to the host `{around.cards[card]}`",
                hint=f"Remove that host first: `tera host remove {around.cards[card]}`",
            )


def _check_machine(request: JoinRequest, around: Surrounding) -> None:
    if request.version != around.version:
        raise Refused(
            f"This host has version {request.version[:40]}, and the server has {around.version}",
            hint="Install the server's version on the host",
        )
    skew = request.now - around.now
    if abs(skew) > SKEW_MAX:
        raise Refused(
            f"The clock of this host is {_minutes(skew)} {'ahead of' if skew > timedelta() else 'behind'} the server's",
            hint="Set the clock, for example with `timedatectl set-ntp true`, then join again",
        )
    if not 0 < request.port <= PORT_MAX:
        raise BadInput(f"{request.port} is not a port")
    if len(request.cards) > CARDS_MAX or not all(map(_UUID.fullmatch, request.cards)):
        raise BadInput("The list of GPUs of this host is not valid")


def _minutes(skew: timedelta) -> str:
    minutes = round(abs(skew).total_seconds() / 60)
    return f"{minutes:,} minutes"
