"""What tenants may call things."""

import re
from typing import Final

from teraflock.base.errors import BadInput

NAME_CHARACTERS_MAX: Final = 63  # a label of a host name
MEMBER_CHARACTERS_MAX: Final = 255
KEY_CHARACTERS_MAX: Final = 100
REASON_CHARACTERS_MAX: Final = 500

_LABEL: Final = re.compile(r"[a-z]([a-z0-9-]*[a-z0-9])?")


def check_name(kind: str, name: str) -> None:
    if len(name) > NAME_CHARACTERS_MAX or not _LABEL.fullmatch(name):
        raise BadInput(
            f"`{_shown(name)}` cannot be the name of {kind}",
            hint=f"Up to {NAME_CHARACTERS_MAX} of `a-z`, `0-9` and `-`, with a letter first and no `-` last",
        )


def check_member_name(name: str) -> None:
    if (
        not 0 < len(name) <= MEMBER_CHARACTERS_MAX
        or not name.isprintable()
        or " " in name
        or name.startswith("mem_")
    ):
        raise BadInput(
            f"`{_shown(name)}` cannot be the name of a member",
            hint="An e-mail address or a short name without spaces; `mem_` begins the ids of members",
        )


def check_key_name(name: str) -> None:
    if not 0 < len(name) <= KEY_CHARACTERS_MAX or not name.isprintable():
        raise BadInput(
            f"`{_shown(name)}` cannot be the name of a key",
            hint=f"Up to {KEY_CHARACTERS_MAX} characters that can be printed",
        )


def check_reason(reason: str) -> str:
    """The reason of an act by the operator, which the tenant reads."""
    reason = reason.strip()
    if not 0 < len(reason) <= REASON_CHARACTERS_MAX or not reason.isprintable():
        raise BadInput(
            "This needs a reason",
            hint=f"Give one line of up to {REASON_CHARACTERS_MAX} characters; the tenant sees it",
        )
    return reason


def _shown(name: str) -> str:
    return ascii(name[:NAME_CHARACTERS_MAX])[1:-1]
