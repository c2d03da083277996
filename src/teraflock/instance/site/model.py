"""A site: one engine or one cloud account."""

from collections.abc import Mapping
from datetime import datetime

import msgspec

from teraflock.instance.driver import ComputeDriver


class SiteRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A site as the settings or the database define it."""

    name: str
    kind: str
    """The folder of its driver."""
    options: Mapping[str, str] = {}
    is_kept: bool = False
    """It is defined in the database, not in the settings."""


class SiteState(msgspec.Struct, frozen=True, kw_only=True):
    problem: str
    """Empty: the site answers."""
    since: datetime


class SiteView(msgspec.Struct, frozen=True, kw_only=True):
    """A site as an operator sees it."""

    record: SiteRecord
    driver: ComputeDriver | None
    """None: it could not be opened, or is not open yet."""
    problem: str
    since: datetime | None
    for_all: bool
    organisations: tuple[str, ...]
    hosts: int
    instances: int


class SiteCheck(msgspec.Struct, frozen=True, kw_only=True):
    """The result of checking a site."""

    name: str
    problem: str = ""
    hint: str = ""
    hosts: int = 0
    machines: int = 0
    types: int = 0
