"""An account at a public cloud, and what is asked of its driver."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final, Protocol, runtime_checkable

import msgspec

from teraflock.instance.driver import Sighting
from teraflock.tenant.model import ProjectId

SEALED: Final = "account:"
"""Prefix of a site's secret that is stored, encrypted, with the account of this name."""


class Vault(Protocol):
    """Encrypts with the installation's key. `bound_to` must be the same for both calls."""

    def seal(self, text: str, *, bound_to: str) -> str: ...

    def open(self, sealed: str, *, bound_to: str) -> str: ...


class NewAccount(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    provider: str
    secret: str = ""
    """The credentials themselves. Either this or `secret_from` is set."""
    secret_from: str = ""
    """Where the server finds the credentials: `env:VARIABLE` or `file:PATH`."""
    options: Mapping[str, str] = {}
    """Options of the driver, such as `base_url`."""
    currency: str = ""
    """The currency of its limits, which is the one that the provider charges in. Empty: the provider's usual one."""
    limit_micros: int | None = None


class CloudAccount(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    provider: str
    sealed: str
    currency: str
    limit_micros: int | None
    created_at: datetime


class AccountUse(msgspec.Struct, frozen=True, kw_only=True):
    """A project that may use an account."""

    account: str
    project_id: ProjectId
    limit_micros: int | None = None


class Leftover(msgspec.Struct, frozen=True, kw_only=True):
    """Something other than a machine that has our mark, such as an SSH key or a disk."""

    kind: str
    remote_id: str
    name: str
    token: str = ""
    """The launch that it belongs to; empty: all machines of the installation share it."""
    price_micros_per_hour: int | None = None
    """What it costs while it exists. None: nothing, or the provider does not say."""
    currency: str = ""

    @property
    def instance_id(self) -> str:
        return self.token.partition(".")[0]


class Orphans(msgspec.Struct, frozen=True, kw_only=True):
    """What has our mark at the provider and belongs to no instance."""

    machines: tuple[Sighting, ...] = ()
    leftovers: tuple[Leftover, ...] = ()


@runtime_checkable
class CloudDriver(Protocol):
    """What the driver of an account can do besides `ComputeDriver`."""

    def check(self) -> str:
        """Make one read-only call. Return what it showed, or raise the error that explains what is wrong."""
        ...

    def leftovers(self) -> Sequence[Leftover]:
        """Things with our mark that no machine uses any more."""
        ...

    def remove_leftover(self, leftover: Leftover) -> None: ...


class Spending(msgspec.Struct, frozen=True, kw_only=True):
    """What machines of an account cost, in the currency of the account."""

    today_micros: int = 0
    """Since midnight UTC."""
    month_micros: int = 0
    """In this month, until now."""
    per_hour_micros: int = 0
    """All machines that run or are being rented, together."""


class UseView(msgspec.Struct, frozen=True, kw_only=True):
    project_id: ProjectId
    project_name: str
    limit_micros: int | None
    spending: Spending


class AccountView(msgspec.Struct, frozen=True, kw_only=True):
    """All that an operator sees of an account. The credentials are not part of it."""

    account: CloudAccount
    secret_from: str
    """`env:VARIABLE`, `file:PATH`, or empty: stored encrypted."""
    options: Mapping[str, str]
    problem: str
    since: datetime | None
    instances: int
    spending: Spending
    uses: tuple[UseView, ...]


class AccountCheck(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    found: str = ""
    """What the provider answered, in one sentence."""
    problem: str = ""
    hint: str = ""
    code: str = ""
    """The code of the error, which has no words of the provider. Empty: nothing is wrong."""
