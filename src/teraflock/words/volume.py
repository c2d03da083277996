"""Volumes as text."""

from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING

from teraflock.base.quantities import bytes_text
from teraflock.words.table import Field, Fields
from teraflock.words.text import age_text, time_text

if TYPE_CHECKING:
    from teraflock.wire.volume import VolumeAnswer


def fields(now: datetime) -> "Fields[VolumeAnswer]":
    return (
        Field("VOLUME", lambda each: each.name),
        Field("STATE", lambda each: each.state),
        Field("SIZE", lambda each: bytes_text(each.size_bytes), right=True, worth=6),
        Field("INSTANCE", lambda each: each.instance, worth=5),
        Field("PATH", lambda each: each.path, worth=4),
        Field("AGE", lambda each: age_text(each.created_at, now), right=True, worth=3),
        Field("PROBLEM", lambda each: each.problem, flexible=True, worth=8),
    )


def facts(volume: "VolumeAnswer", now: datetime) -> Iterator[tuple[str, str]]:
    yield "volume", volume.name
    yield "state", volume.state
    yield "problem", volume.problem
    yield "id", volume.id
    yield "size", bytes_text(volume.size_bytes)
    yield "instance", f"{volume.instance}, at {volume.path}" if volume.instance else ""
    for each in volume.snapshots:
        size = f", {bytes_text(each.size_bytes)}" if each.state == "ready" else ""
        yield "snapshot", f"{each.name} ({each.state}{size}, {age_text(each.created_at, now)} ago)"
    if volume.copied:
        yield "copied", copied_text(volume, now)
    for copy in volume.copies:
        if copy.state == "removing":
            yield "old copy", f"on {copy.host}, removed when its host answers"
    yield "created", f"{time_text(volume.created_at)} UTC ({age_text(volume.created_at, now)} ago)"


def copied_text(volume: "VolumeAnswer", now: datetime) -> str:
    """Where the last complete copy of a volume is, and how old."""
    ready = [each for each in volume.copies if each.state == "ready"]
    if not ready:
        return "to another host, not yet"
    last = max(ready, key=lambda each: each.made_at)
    less = ", without its snapshots" if volume.snapshots else ""
    return f"to {last.host}, {bytes_text(last.size_bytes)}, {age_text(last.made_at, now)} ago{less}"
