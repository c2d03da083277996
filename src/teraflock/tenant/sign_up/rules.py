"""Decisions of sign-up: the name of a new organisation, and how many there may be."""

import re
from datetime import timedelta
from typing import Final

from teraflock.base.errors import TooMany

DAY: Final = timedelta(days=1)
_WORD_CHARACTERS_MAX: Final = 30
_RETRY_SECONDS: Final = 3600


def organisation_name(user_name: str, number: bytes) -> str:
    """A name that nobody chose: if people chose it, they would learn which organisations exist."""
    words = re.sub(r"[^a-z0-9]+", "-", user_name.partition("@")[0]).strip("-")
    letters = words if words[:1].isalpha() else f"org-{words}"
    return f"{letters[:_WORD_CHARACTERS_MAX].strip('-')}-{number.hex()}"


def check_per_day(count: int, per_day_max: int) -> None:
    if count >= per_day_max:
        raise TooMany(
            "Too many people signed up today",
            hint="Try again tomorrow, or ask the operator for an invitation",
            context={"retry_after_seconds": _RETRY_SECONDS},
        )
