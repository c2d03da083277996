"""Which accounts are acceptable, and which machines are orphans. Pure."""

import re
from collections.abc import Collection, Iterable, Mapping
from ipaddress import ip_address
from typing import Final
from urllib.parse import urlsplit

from teraflock.base.errors import BadInput
from teraflock.base.limits import VARIABLE
from teraflock.catalog.renting import RENTING
from teraflock.instance.account.model import Leftover, NewAccount
from teraflock.instance.driver import Sighting
from teraflock.instance.states import ENDED

SECRET_CHARACTERS_MAX: Final = 16_384
"""A service account's JSON has 2,400."""
LIMIT_MICROS_MAX: Final = 10**15
ENVIRONMENT: Final = re.compile(f"env:{VARIABLE}")


def check(account: NewAccount) -> None:
    """Reject an account that cannot work, before anything is stored."""
    if bool(account.secret.strip()) == bool(account.secret_from):
        raise BadInput(
            "An account needs its credentials once: as text, or as a reference",
            hint="Give the key, or `env:VARIABLE` or `file:PATH` as the server sees them",
        )
    if len(account.secret) > SECRET_CHARACTERS_MAX or "\0" in account.secret:
        raise BadInput("These credentials are too long, or contain a NUL character")
    if account.secret_from and not _is_reference(account.secret_from):
        raise BadInput(
            "Credentials are referred to as `env:VARIABLE` or `file:PATH`",
            hint="The path must be absolute: the server reads it",
        )
    if account.limit_micros is not None and not 0 <= account.limit_micros <= LIMIT_MICROS_MAX:
        raise BadInput("The limit is out of range", hint="Give an amount per month, such as `500`")
    if url := account.options.get("base_url", ""):
        check_base_url(url)


def currency_of(account: NewAccount) -> tuple[str, dict[str, str]]:
    """The currency of an account, and the option that tells its driver, where the driver has a choice."""
    usual = RENTING[account.provider].currency
    chosen = account.options.get("currency") or account.currency or usual
    if account.currency not in ("", chosen):
        raise BadInput(
            f"The limits are in {account.currency} and the prices in {chosen}",
            hint="Use one currency for both",
        )
    return chosen, ({"currency": chosen} if usual != "USD" else {})


def _is_reference(text: str) -> bool:
    return bool(ENVIRONMENT.fullmatch(text)) or (text.startswith("file:/") and "\0" not in text)


def check_base_url(url: str) -> None:
    """Accept HTTPS, and plain HTTP only on this machine: credentials travel in every request."""
    try:
        parts = urlsplit(url)
        is_valid = bool(parts.hostname) and parts.port != 0 and parts.username is None
    except ValueError:
        is_valid = False
    if not is_valid or parts.query or parts.fragment or any(character <= " " for character in url):
        raise BadInput(f"`{url[:80]}` is not a base URL", hint="Write it as `https://host/path`")
    if parts.scheme != "https" and not (parts.scheme == "http" and _is_loopback(parts.hostname or "")):
        raise BadInput(
            f"`{url[:80]}` would send credentials without encryption",
            hint="Use `https://`. Plain `http://` is accepted only for this machine",
        )


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def orphans(sightings: Iterable[Sighting], known: Collection[str]) -> tuple[Sighting, ...]:
    """Machines with our mark whose instance has no record here."""
    return tuple(each for each in sightings if each.instance_id not in known)


def left_over(leftovers: Iterable[Leftover], known: Mapping[str, tuple[str, str]]) -> tuple[Leftover, ...]:
    """Things of machines whose instance has ended, or has no record here. A launch may be using the others.

    `known` has the phase and the site of each instance."""
    return tuple(
        each for each in leftovers if each.instance_id not in known or known[each.instance_id][0] in ENDED
    )
