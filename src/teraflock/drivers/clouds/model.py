"""What a module for one cloud describes: calls, and how their replies are read. Pure.

A question that needs several calls is a generator: it yields a `CloudCall`, receives the `CloudReply`, and returns its
result. The engine sends the calls, so a module never waits, retries or knows credentials.
"""

from abc import ABC, abstractmethod
from collections.abc import Generator, Mapping, Sequence
from datetime import timedelta
from typing import Any, ClassVar, Final, Literal, TypeVar

import msgspec

from teraflock.base.errors import TeraflockError
from teraflock.drivers.rented import Remote
from teraflock.instance.account.model import Leftover
from teraflock.instance.driver import Capability, Machine, MachineType
from teraflock.instance.engine_errors import (
    BadCredentials,
    EngineBusy,
    EngineDown,
    EngineRefused,
    NoMoney,
    NoRoom,
    OverQuota,
)

T = TypeVar("T")
WORDS_CHARACTERS_MAX: Final = 300


class CloudCall(msgspec.Struct, frozen=True, kw_only=True):
    method: str
    path: str
    query: Mapping[str, str] = {}
    body: Any = None
    act: Literal["read", "launch", "change"] = "read"
    accepts: frozenset[int] = frozenset()
    """Statuses from 400 on that are an answer and not an error, such as 404 for a delete."""


class CloudReply(msgspec.Struct, frozen=True, kw_only=True):
    status: int
    body: Any = None
    """Decoded JSON. None if there was none."""
    text: str = ""
    """The start of a reply that is not JSON."""
    retry_after: float | None = None


Asking = Generator[CloudCall, CloudReply, T]


class Pace(msgspec.Struct, frozen=True, kw_only=True):
    """The provider's rates, for the whole account."""

    call_seconds: float = 1.0
    launch_seconds: float = 1.0


class Boot(msgspec.Struct, frozen=True, kw_only=True):
    """What a new machine is given."""

    mark: str
    machine: Machine
    login_key: str
    """Public key with which the server logs in, to probe the machine and run commands."""
    cloud_config: str
    """First-boot configuration for clouds with cloud-init."""
    script: str
    """First-boot shell script, for clouds that run containers."""

    @property
    def token(self) -> str:
        return self.machine.rental.token if self.machine.rental else ""

    @property
    def label(self) -> str:
        """Mark and token in one word, for clouds with a single free text."""
        return f"tf.{self.mark}.{self.token}"


def read_label(mark: str, text: str) -> tuple[str, str] | None:
    """The instance id and the token in a label of ours; None: it is not ours."""
    begin = f"tf.{mark}."
    token = text.removeprefix(begin)
    return (token.partition(".")[0], token) if text.startswith(begin) and token else None


class NoMachineFree(NoRoom):
    """The provider has no such machine free there now."""

    for_tenant: ClassVar[str] = "The provider has no such machine free. Try another type or region"


class Unusable(NoRoom):
    """The machine was rented and does not work. It is given back, and the next place is tried."""

    for_tenant: ClassVar[str] = ""


class CannotDo(EngineRefused):
    """The provider has nothing for what the tenant asked."""

    for_tenant: ClassVar[str] = ""


class CloudApi(ABC):
    kind: ClassVar[str]
    title: ClassVar[str]
    base_url: ClassVar[str]
    currency: ClassVar[str] = "USD"
    login: ClassVar[str] = "root"
    pace: ClassVar[Pace] = Pace()
    capabilities: ClassVar[frozenset[Capability]] = frozenset({Capability.EXEC})
    honours_tokens: ClassVar[bool] = False
    injects_host_key: ClassVar[bool] = True
    """Whether the machine can be given a host key. Otherwise the first key it shows is trusted."""
    boot_time_max: ClassVar[timedelta] = timedelta(minutes=20)
    types_age_max: ClassVar[timedelta] = timedelta(minutes=2)
    """How often types, prices and free capacity are read again."""
    options: ClassVar[Mapping[str, str]] = {}
    """Options of its sites, besides those of all clouds."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._options = options

    @abstractmethod
    def check(self) -> Asking[str]:
        """One read-only call that needs valid credentials. Returns what it showed."""

    @abstractmethod
    def types(self) -> Asking[list[MachineType]]: ...

    @abstractmethod
    def machines(self, mark: str) -> Asking[list[Remote]]:
        """All machines with our mark, every page."""

    @abstractmethod
    def rent(self, boot: Boot) -> Asking[Remote]: ...

    @abstractmethod
    def give_back(self, remote_id: str) -> Asking[None]:
        """End a machine. Succeeds if it does not exist."""

    @abstractmethod
    def error(self, call: CloudCall, reply: CloudReply) -> TeraflockError:
        """The error of ours that a reply means."""

    def stop(self, remote_id: str) -> Asking[None]:
        raise NotImplementedError

    def start(self, remote_id: str) -> Asking[None]:
        raise NotImplementedError

    def leftovers(self, mark: str) -> Asking[list[Leftover]]:
        """Things with our mark other than machines."""
        return []
        yield

    def remove_leftover(self, leftover: Leftover) -> Asking[None]:
        return None
        yield


def common_error(cloud: CloudApi, reply: CloudReply, words: str) -> TeraflockError:
    """The error for a status, where the provider has no more specific code."""
    said = f"{cloud.title} answered {reply.status}: {one_line(words)}" if words else ""
    status = f"{cloud.title} answered with status {reply.status}"
    if reply.status == 401 or reply.status == 403:
        return BadCredentials(
            said or status, hint="Check the key and its permissions, then run `tera account key NAME`"
        )
    if reply.status == 402:
        return NoMoney(said or status, hint=f"Add money to the account at {cloud.title}")
    if reply.status == 429:
        return EngineBusy(f"{cloud.title} asks for fewer requests", hint="Teraflock waits and tries again")
    if reply.status >= 500:
        return EngineDown(said or status, hint="Teraflock tries again")
    return EngineRefused(said or status, hint="The provider does not accept this request")


def no_capacity(cloud: CloudApi, words: str) -> NoRoom:
    return NoMachineFree(
        f"{cloud.title} has no such machine free: {one_line(words)}", hint="The next place is tried"
    )


def over_quota(cloud: CloudApi, words: str) -> OverQuota:
    return OverQuota(
        f"{cloud.title} refuses more machines: {one_line(words)}",
        hint=f"Ask {cloud.title} for a higher quota, or use another type, region or account",
    )


def no_money(cloud: CloudApi, words: str) -> NoMoney:
    return NoMoney(
        f"{cloud.title} wants to be paid first: {one_line(words)}",
        hint=f"Check the balance and payment method of the account at {cloud.title}",
    )


def one_line(words: str) -> str:
    """A provider's words as part of a sentence: printable, and not endless."""
    text = " ".join("".join(c if c.isprintable() else " " for c in words).split())
    return text[:WORDS_CHARACTERS_MAX].rstrip(". ")


def micros_of(amount: float) -> int:
    """An amount per hour that a provider sends as a float."""
    return round(amount * 10**6)


def names(types: Sequence[MachineType]) -> str:
    count, regions = len({each.name for each in types}), len({each.region for each in types})
    return f"{count} machine types in {regions} regions"
