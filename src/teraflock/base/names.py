"""Rules for names that people choose, and for the reasons that operators give. Each check returns what it accepts.

The domain and the command line use the same ones: the command line refuses what the server would refuse, with the same
sentence.
"""

import re
from typing import Final

from teraflock.base.errors import BadInput
from teraflock.base.limits import (
    LABEL_KEY,
    NAME,
    NAME_CHARACTERS_MAX,
    PLACE,
    PLACE_CHARACTERS_MAX,
    REASON_CHARACTERS_MAX,
    VARIABLE,
)

MEMBER_CHARACTERS_MAX: Final = 255
KEY_CHARACTERS_MAX: Final = 100


def check_name(name: str, kind: str) -> str:
    """`kind` is what has the name, such as `a network`."""
    host = ". It becomes the host name" if kind == "an instance" else ""
    return _checked(
        name,
        kind,
        f"Use up to {NAME_CHARACTERS_MAX} of `a-z`, `0-9` and `-`. Start with a letter; do not end with `-`{host}",
        is_valid=bool(re.fullmatch(NAME, name)),
    )


def check_place(name: str, kind: str) -> str:
    """The name of a site, a host or a region."""
    return _checked(
        name,
        kind,
        f"Use up to {PLACE_CHARACTERS_MAX} of `a-z`, `0-9` and `-`. Do not start or end with `-`",
        is_valid=bool(re.fullmatch(PLACE, name)),
    )


def check_label_key(name: str) -> str:
    return _checked(
        name,
        "a label",
        "Use up to 63 letters, digits and `._/-`",
        is_valid=bool(re.fullmatch(LABEL_KEY, name)),
    )


def check_variable(name: str) -> str:
    return _checked(
        name,
        "an environment variable",
        "Use letters, digits and `_`. Do not start with a digit",
        is_valid=bool(re.fullmatch(VARIABLE, name)),
    )


def check_member_name(name: str) -> str:
    return _checked(
        name,
        "a member",
        "Use an e-mail address or a short name without spaces. It must not start with `mem_`",
        is_valid=0 < len(name) <= MEMBER_CHARACTERS_MAX
        and name.isprintable()
        and " " not in name
        and not name.startswith("mem_"),
    )


def check_key_name(name: str) -> str:
    return _checked(
        name,
        "a key",
        f"Use up to {KEY_CHARACTERS_MAX} printable characters",
        is_valid=0 < len(name) <= KEY_CHARACTERS_MAX and name.isprintable(),
    )


def _checked(name: str, kind: str, hint: str, *, is_valid: bool) -> str:
    if not is_valid:
        start = name[:NAME_CHARACTERS_MAX]
        shown = start if start.isprintable() else ascii(start)[1:-1]
        raise BadInput(f"`{shown}` is not a valid name for {kind}", hint=hint)
    return name


def check_reason(reason: str) -> str:
    """Check the reason for an operator's action, which the tenant reads."""
    reason = reason.strip()
    if not 0 < len(reason) <= REASON_CHARACTERS_MAX or not reason.isprintable():
        raise BadInput(
            "This action needs a reason",
            hint=f"Give one line of up to {REASON_CHARACTERS_MAX} characters; the tenant sees it",
        )
    return reason
