"""Rules for names that tenants choose, and for the reasons that operators give."""

import re
from typing import Final

from teraflock.base.errors import BadInput
from teraflock.base.limits import NAME, NAME_CHARACTERS_MAX, REASON_CHARACTERS_MAX

MEMBER_CHARACTERS_MAX: Final = 255
KEY_CHARACTERS_MAX: Final = 100


def check_name(kind: str, name: str) -> None:
    if not re.fullmatch(NAME, name):
        raise BadInput(
            f"`{_shown(name)}` is not a valid name for {kind}",
            hint=f"Use up to {NAME_CHARACTERS_MAX} of `a-z`, `0-9` and `-`. Start with a letter; do not end with `-`",
        )


def check_member_name(name: str) -> None:
    if (
        not 0 < len(name) <= MEMBER_CHARACTERS_MAX
        or not name.isprintable()
        or " " in name
        or name.startswith("mem_")
    ):
        raise BadInput(
            f"`{_shown(name)}` is not a valid name for a member",
            hint="Use an e-mail address or a short name without spaces. It must not start with `mem_`",
        )


def check_key_name(name: str) -> None:
    if not 0 < len(name) <= KEY_CHARACTERS_MAX or not name.isprintable():
        raise BadInput(
            f"`{_shown(name)}` is not a valid name for a key",
            hint=f"Use up to {KEY_CHARACTERS_MAX} printable characters",
        )


def check_reason(reason: str) -> str:
    """Check the reason for an operator's action, which the tenant reads."""
    reason = reason.strip()
    if not 0 < len(reason) <= REASON_CHARACTERS_MAX or not reason.isprintable():
        raise BadInput(
            "This action needs a reason",
            hint=f"Give one line of up to {REASON_CHARACTERS_MAX} characters; the tenant sees it",
        )
    return reason


def _shown(name: str) -> str:
    return ascii(name[:NAME_CHARACTERS_MAX])[1:-1]
