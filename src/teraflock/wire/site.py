"""Sites as the API has them."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated

import msgspec
from msgspec import Meta

from teraflock.base.limits import PLACE, PLACE_CHARACTERS_MAX, whole
from teraflock.wire.shape import SizeAnswer
from teraflock.wire.word import closed

SiteName = Annotated[str, Meta(min_length=1, max_length=PLACE_CHARACTERS_MAX, pattern=whole(PLACE))]
OptionText = Annotated[str, Meta(max_length=4096, pattern=r"^[^\u0000]*$")]


class SiteRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    name: SiteName
    kind: Annotated[str, Meta(min_length=1, max_length=40, pattern=r"^[a-z0-9_-]+$(?!\n)")]
    """The driver: `simulated`, `lxd` …"""
    options: Annotated[
        Mapping[Annotated[str, Meta(max_length=60, pattern=r"^[a-z0-9_]*$(?!\n)")], OptionText],
        Meta(max_length=64),
    ] = {}
    """Options of the driver. A secret is only named: `env:VARIABLE` or `file:PATH` on the server."""


class MachineTypeAnswer(SizeAnswer, frozen=True, kw_only=True):
    name: str
    region: str
    prices_micros_per_hour: Mapping[str, int]
    """What it costs us, by mode."""
    currency: str


class SiteAnswer(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    kind: str
    defined_in: Annotated[str, closed("settings", "database")]
    state: Annotated[str, closed("ready", "broken", "unknown")]
    """`unknown`: nobody has asked it yet."""
    problem: str
    """Why it is broken."""
    since: datetime | None
    """Since when it is in this state."""
    simulated: bool
    rents: bool
    """Whether machines are rented here, one for each instance; otherwise it has hosts of its own."""
    capabilities: tuple[str, ...]
    hosts: int
    """Its own hosts, or those that are rented now."""
    instances: int
    open: bool
    """Whether every tenant may rent machines here."""
    organisations: tuple[str, ...]
    """The ids of the organisations that may."""
    options: Mapping[str, str]
    types: tuple[MachineTypeAnswer, ...] = ()
    """What can be rented; only where one site is asked for."""
    types_at: datetime | None = None
    """When the provider answered so. Null: never, or the types are options of the site."""


class SiteList(msgspec.Struct, frozen=True, kw_only=True):
    items: tuple[SiteAnswer, ...]


class SiteCheckAnswer(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    ok: bool
    problem: str
    hint: str
    hosts: int
    """How many of its own hosts it reported."""
    machines: int
    """How many machines it has that carry our mark."""
    types: int
    """How many machine types can be rented, counted per region."""
