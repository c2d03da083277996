"""Fields that several nouns share: what a name, a reference, a month or an amount may be."""

from typing import Annotated

from msgspec import Meta

Month = Annotated[
    str, Meta(pattern=r"^20[0-9]{2}-(0[1-9]|1[0-2])$(?!\n)", description="Such as `2026-11`, UTC.")
]
Micros = Annotated[int, Meta(ge=1, le=10**15)]
Reason = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=500,
        pattern=r"^[^\u0000-\u001f\u007f]+$(?!\n)",
        description="One line. The tenant sees it in events, in the audit log and with the instance.",
    ),
]
# `$` alone would let a line break pass behind the last character: Python's regular expressions are so.
Name = Annotated[str, Meta(min_length=1, max_length=63, pattern=r"^[a-z]([a-z0-9-]*[a-z0-9])?$(?!\n)")]
"""A host name's label: the guest bears it."""
Ref = Annotated[str, Meta(max_length=100, pattern=r"^[^\u0000-\u001f\u007f]*$(?!\n)")]
"""An id or a name."""
