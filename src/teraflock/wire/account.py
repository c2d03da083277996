"""Accounts at public clouds, as the API has them. No response contains credentials."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated

import msgspec
from msgspec import Meta

from teraflock.wire.field import Micros
from teraflock.wire.site import OptionText, SiteName
from teraflock.wire.word import closed

Secret = Annotated[str, Meta(min_length=1, max_length=16_384, pattern=r"^[^\u0000]*$")]


class AccountRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    name: SiteName
    """The name of the account and of its site."""
    provider: Annotated[str, Meta(min_length=1, max_length=40, pattern=r"^[a-z0-9_-]+$(?!\n)")]
    secret: Secret | None = None
    """The credentials. They are stored encrypted and never returned."""
    secret_from: Annotated[str, Meta(max_length=4096, pattern=r"^[^\u0000-\u001f\u007f]*$(?!\n)")] = ""
    """Where the server finds the credentials instead: `env:VARIABLE` or `file:PATH`."""
    options: Annotated[
        Mapping[Annotated[str, Meta(max_length=60, pattern=r"^[a-z0-9_]*$(?!\n)")], OptionText],
        Meta(max_length=64),
    ] = {}
    """Options of the driver, such as `base_url`."""
    currency: Annotated[str, Meta(pattern=r"^([A-Z]{3})?$(?!\n)")] = ""
    """The currency of the limits: the one that the provider charges in. Empty: the provider's usual one."""
    limit_micros: Micros | None = None
    """The most that the account's machines may cost in a month. Default: no limit."""


class AccountKeyRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    secret: Secret


class AccountLimitRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    limit_micros: Micros | None = None
    """The most that machines may cost in a month. Null: no limit."""


class AccountProjectAnswer(msgspec.Struct, frozen=True, kw_only=True):
    project: str
    project_id: str
    limit_micros: int | None
    month_micros: int
    """What its machines cost this month, until now."""
    per_hour_micros: int


class AccountAnswer(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    provider: str
    state: Annotated[str, closed("ready", "broken", "unknown")]
    """`unknown`: nobody has asked the provider yet."""
    problem: str
    since: datetime | None
    secret_from: str
    """`env:VARIABLE`, `file:PATH`, or empty: the credentials are stored encrypted."""
    options: Mapping[str, str]
    currency: str
    limit_micros: int | None
    today_micros: int
    """What its machines cost today (UTC), until now."""
    month_micros: int
    per_hour_micros: int
    instances: int
    projects: tuple[AccountProjectAnswer, ...]
    created_at: datetime


class AccountList(msgspec.Struct, frozen=True, kw_only=True):
    items: tuple[AccountAnswer, ...]


class AccountCheckAnswer(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    ok: bool
    found: str
    """What the provider answered, in one sentence."""
    problem: str
    hint: str
    code: str = ""
    """The code of the error. Empty: nothing is wrong."""


class OrphanAnswer(msgspec.Struct, frozen=True, kw_only=True):
    kind: str
    """`machine`, or what else it is, such as `ssh-key`."""
    remote_id: str
    """The provider's id."""
    name: str
    """Of a machine: the id of the instance in its mark."""
    micros_per_hour: int | None
    """What it costs. Null: unknown, or nothing."""
    currency: str


class OrphanList(msgspec.Struct, frozen=True, kw_only=True):
    items: tuple[OrphanAnswer, ...]
