"""Types of fields that several nouns share: names, references, months, amounts."""

from typing import Annotated

from msgspec import Meta

from teraflock.base.limits import NAME, NAME_CHARACTERS_MAX, REASON_CHARACTERS_MAX, whole

Month = Annotated[
    str,
    Meta(
        pattern=r"^20[0-9]{2}-(0[1-9]|1[0-2])$(?!\n)",
        description="A calendar month in UTC, such as `2026-11`.",
    ),
]
Micros = Annotated[int, Meta(ge=1, le=10**15)]
Reason = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=REASON_CHARACTERS_MAX,
        pattern=r"^[^\u0000-\u001f\u007f]+$(?!\n)",
        description="One line of text. The tenant sees it in events, in the audit log and with the instance.",
    ),
]
Name = Annotated[str, Meta(min_length=1, max_length=NAME_CHARACTERS_MAX, pattern=whole(NAME))]
"""A valid host name label, because the guest uses it as its host name."""
Ref = Annotated[str, Meta(max_length=100, pattern=r"^[^\u0000-\u001f\u007f]*$(?!\n)")]
"""An id or a name."""
