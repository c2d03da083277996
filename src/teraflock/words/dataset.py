"""Datasets as text."""

from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING

from teraflock.base.quantities import bytes_text
from teraflock.words.table import Field, Fields
from teraflock.words.text import age_text, time_text

if TYPE_CHECKING:
    from teraflock.wire.dataset import DatasetAnswer


def fields(now: datetime) -> "Fields[DatasetAnswer]":
    return (
        Field("DATA", lambda each: each.name, flexible=True),
        Field("STATE", lambda each: each.state),
        Field("SIZE", lambda each: bytes_text(each.size_bytes), right=True, worth=6),
        Field("FILES", lambda each: f"{each.files:,}", right=True, worth=5),
        Field("AGE", lambda each: age_text(each.created_at, now), right=True, worth=4),
    )


def facts(dataset: "DatasetAnswer", now: datetime) -> Iterator[tuple[str, str]]:
    yield "data", dataset.name
    yield "state", dataset.state
    yield "id", dataset.id
    yield "size", bytes_text(dataset.size_bytes)
    yield "files", f"{dataset.files:,}"
    yield "digest", dataset.digest
    yield "pushed", f"{time_text(dataset.created_at)} UTC ({age_text(dataset.created_at, now)} ago)"
    yield "in instances", f"/data/{dataset.name}, as `$TERA_DATA/{dataset.name}`"
