"""Published ports as text."""

from typing import TYPE_CHECKING

from teraflock.words.table import Field, Fields

if TYPE_CHECKING:
    from collections.abc import Iterable

    from teraflock.wire.published_port import PublishedPortAnswer


def fields() -> "Fields[PublishedPortAnswer]":
    return (
        Field("INSTANCE", lambda each: each.instance, flexible=True),
        Field("PORT", lambda each: str(each.guest_port), right=True),
        Field("PUBLISHED AT", lambda each: f"{each.address}:{each.port}"),
    )


def ports_text(ports: "Iterable[PublishedPortAnswer]") -> str:
    """`8080 at 203.0.113.5:30001`."""
    return ", ".join(f"{each.guest_port} at {each.address}:{each.port}" for each in ports)
