"""Instances of every tenant, as text for operators."""

from datetime import datetime
from typing import TYPE_CHECKING

from teraflock.base.quantities import memory_text
from teraflock.words.instance import state_text
from teraflock.words.shape import cards_text
from teraflock.words.table import Field, Fields
from teraflock.words.text import age_text

if TYPE_CHECKING:
    from teraflock.wire.operator import LocatedInstance


def fields(now: datetime) -> "Fields[LocatedInstance]":
    return (
        Field("ORGANISATION", lambda each: each.organisation, flexible=True),
        Field("PROJECT", lambda each: each.project, flexible=True, worth=8),
        Field("NAME", lambda each: each.instance.name, flexible=True),
        Field("STATE", lambda each: state_text(each.instance)),
        Field("GPUS", lambda each: cards_text(each.instance.shape), worth=7),
        Field("VCPUS", lambda each: str(each.instance.shape.vcpus), right=True, worth=4),
        Field("RAM", lambda each: memory_text(each.instance.shape.ram_bytes), right=True, worth=4),
        Field("HOST", lambda each: each.instance.host or "", flexible=True, worth=6),
        Field("AGE", lambda each: age_text(each.instance.created_at, now), right=True, worth=5),
        Field("ID", lambda each: each.instance.id, worth=3),
        Field("HOLD REASON", _hold_text, flexible=True, worth=5),
        Field("PROBLEM", lambda each: each.problem, flexible=True, worth=6),
    )


def _hold_text(located: "LocatedInstance") -> str:
    return located.instance.hold.reason if located.instance.hold else ""
