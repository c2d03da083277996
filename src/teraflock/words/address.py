"""Public addresses as text."""

from datetime import datetime
from typing import TYPE_CHECKING

from teraflock.words.table import Field, Fields
from teraflock.words.text import age_text

if TYPE_CHECKING:
    from teraflock.wire.address import AddressAnswer


def fields(now: datetime) -> "Fields[AddressAnswer]":
    return (
        Field("PUBLIC ADDRESS", lambda each: each.address),
        Field("LEADS TO", target_text, flexible=True),
        Field("PRIVATE ADDRESS", lambda each: each.private_address, worth=5),
        Field("AGE", lambda each: age_text(each.created_at, now), right=True, worth=4),
    )


def target_text(address: "AddressAnswer") -> str:
    return f"{address.target_kind} {address.target}" if address.target else "nothing"
