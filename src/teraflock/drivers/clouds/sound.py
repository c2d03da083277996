"""What of a provider's answer is believed: addresses, users and names become parts of commands and of texts. Pure.

Only a provider, or an address that an operator set by mistake, can send what is refused here. A listing with it counts
as no answer at all, so nothing is concluded about machines. A price that cannot be one counts as unknown.
"""

import re
from collections.abc import Iterable
from datetime import datetime
from ipaddress import ip_address
from typing import Final
from urllib.parse import parse_qsl, urlsplit

from msgspec.structs import replace

from teraflock.drivers.rented import Remote
from teraflock.instance.driver import Endpoint, MachineType

PRICE_MICROS_MAX: Final = 100_000 * 10**6
"""Per hour. The dearest machine of 2026 costs about a thousandth of it."""
TEXT_CHARACTERS_MAX: Final = 512
USER: Final = re.compile(r"[a-z_][a-z0-9_-]{0,31}")
HOST: Final = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]{0,252}[A-Za-z0-9])?")


def sound(remote: Remote) -> Remote:
    """A machine that can be used. Raise `ValueError` if a part of it is not what it should be."""
    texts = (remote.remote_id, remote.token, remote.zone, remote.type, remote.host_key)
    if not all(map(is_plain, texts)) or not USER.fullmatch(remote.user):
        raise ValueError("a machine's id, zone, type or user has characters that none has")
    if not all(map(_is_endpoint, remote.endpoints.values())):
        raise ValueError("a machine's address or port is none")
    return remote if is_price(remote.price_micros_per_hour) else replace(remote, price_micros_per_hour=None)


def sound_types(types: Iterable[MachineType]) -> tuple[MachineType, ...]:
    """The types that can be offered, each with the prices that can be true."""
    named = (each for each in types if is_plain(each.name) and is_plain(each.region))
    checked = (
        replace(each, prices={m: p for m, p in each.prices.items() if p and is_price(p)}) for each in named
    )
    return tuple(each for each in checked if each.prices)


def is_price(micros: int | None) -> bool:
    return micros is None or 0 <= micros <= PRICE_MICROS_MAX


def is_plain(text: object) -> bool:
    """Whether a text can stand in a line: printable, and not endless."""
    return isinstance(text, str) and len(text) <= TEXT_CHARACTERS_MAX and text.isprintable()


def time_of(text: str | None) -> datetime | None:
    """A time in ISO 8601; None: the provider does not say it."""
    return datetime.fromisoformat(text) if text else None


def token_of_page(address: str, parameter: str) -> str:
    """The token of the next page in a whole address; empty: there is no address. Only the token is used."""
    if not address:
        return ""
    found = {name.lower(): value for name, value in parse_qsl(urlsplit(address).query)}
    return found[parameter.lower()]  # without it there is a page that nobody can ask for


def _is_endpoint(at: Endpoint) -> bool:
    if not 0 < at.port < 1 << 16:
        return False
    try:
        return bool(ip_address(at.address))
    except ValueError:
        return bool(HOST.fullmatch(at.address))
