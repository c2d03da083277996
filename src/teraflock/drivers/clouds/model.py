"""What a module for one cloud describes: calls, and how their replies are read. Pure.

A question that needs several calls is a generator: it yields a `CloudCall`, receives the `CloudReply`, and returns its
result. The engine sends the calls, so a module never waits, retries or knows credentials.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, ClassVar, Final

import msgspec

from teraflock.base.errors import BadInput, TeraflockError
from teraflock.base.money import parse_micros
from teraflock.base.quantities import GIB
from teraflock.drivers.clouds.calls import Asking, CloudCall, CloudReply
from teraflock.drivers.clouds.cards import card
from teraflock.drivers.clouds.errors import (
    CannotDo,
    ErrorCodes,
    NoMachineFree,
    error_of,
    no_capacity,
    one_line,
    said,
)
from teraflock.drivers.clouds.marks import Boot
from teraflock.drivers.clouds.prices import disk_price
from teraflock.drivers.clouds.signing import Bearer, Signer
from teraflock.drivers.clouds.sound import sound
from teraflock.drivers.rented import Remote
from teraflock.instance.account.model import Leftover
from teraflock.instance.driver import Capability, Endpoint, MachineType, Seen
from teraflock.instance.model import SSH_PORT

DISK_OPTION: Final = "Disk of each machine in GB"
PRICES_OPTION: Final = (
    "What each type costs per hour: `TYPE=1.20,TYPE:spot=0.40`. Only these types are offered. Required"
)
CURRENCY_OPTION: Final = "The currency of the account's prices"
HOURS: Final = "hours_max"
HOURS_MAX: Final = 8_760
HOURS_OPTION: Final = "After how many hours the provider ends each machine by itself. Default: never"


class Pace(msgspec.Struct, frozen=True, kw_only=True):
    """The provider's rates, for the whole account."""

    call_seconds: float = 1.0
    launch_seconds: float = 1.0


class SpotNotice(msgspec.Struct, frozen=True, kw_only=True):
    """How a spot machine learns that it will be taken back: a command in the guest, and how its output is read."""

    command: str
    """A shell command without side effects."""
    read: Callable[[str, datetime], datetime | None]
    """From the output and the time of now to the time at which the machine ends. None: no notice."""


class CloudApi(ABC):
    kind: ClassVar[str]
    title: ClassVar[str]
    signs: ClassVar[type[Signer]] = Bearer
    base_url: ClassVar[str]
    """The address of the API. `{region}` stands for the region of a call."""
    services: ClassVar[Mapping[str, str]] = {}
    """Addresses of other services, by name. With a base URL of the operator they are below that: `BASE/NAME`."""
    currency: str = "USD"
    login: ClassVar[str] = "root"
    pace: ClassVar[Pace] = Pace()
    capabilities: ClassVar[frozenset[Capability]] = frozenset()
    """What its machines can do besides commands and files over SSH, which all clouds have."""
    codes: ClassVar[ErrorCodes] = ErrorCodes()
    injects_host_key: ClassVar[bool] = True
    """Whether the machine can be given a host key. Otherwise the first key it shows is trusted."""
    runs_first_boot: ClassVar[bool] = True
    """Whether the machine runs a script at its first boot. Otherwise it gets its programs over SSH."""
    boot_time_max: ClassVar[timedelta] = timedelta(minutes=20)
    types_age_max: ClassVar[timedelta] = timedelta(minutes=2)
    """How often types, prices and free capacity are read again."""
    notice: ClassVar[SpotNotice | None] = None
    """How a spot machine learns of its end; None: the listing says it, or nobody does."""
    has_time_limit: ClassVar[bool] = False
    """Whether `Boot.ends_at` has an effect: the provider ends machines at a time."""
    options: ClassVar[Mapping[str, str]] = {}
    """Options of its sites, besides those of all clouds."""
    defaults: ClassVar[Mapping[str, str]] = {}
    """The values of options that are not set."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._options = options
        self.currency = options.get("currency") or type(self).currency

    @classmethod
    def signer(cls, secret: str) -> Signer:
        """Who signs the calls, from the stored credentials. Raise `BadInput` if they have another form."""
        return cls.signs(secret)

    @classmethod
    def facts(cls, secret: str) -> Mapping[str, str]:
        """Options that the credentials contain and that are not secret, such as the name of a project."""
        return {}

    # Questions

    def check(self) -> Asking[str]:
        """One read-only call that needs valid credentials. Returns what it showed."""
        found = yield from self.types()
        return f"{self.title} offers {names(found)}"

    @abstractmethod
    def types(self) -> Asking[list[MachineType]]: ...

    @abstractmethod
    def machines(self, mark: str) -> Asking[list[Remote]]:
        """All machines with our mark, every page."""

    @abstractmethod
    def rent(self, boot: Boot) -> Asking[Remote]: ...

    def in_first_with_room(
        self, places: Iterable[str], rent_in: Callable[[str], Asking[Remote]], nowhere: str
    ) -> Asking[Remote]:
        """Try these zones in turn. `nowhere`: why there may be none."""
        error = no_capacity(self.title, nowhere)
        for place in places:
            try:
                return (yield from rent_in(place))
            except NoMachineFree as full:
                error = full
        raise error

    @abstractmethod
    def give_back(self, remote_id: str) -> Asking[None]:
        """End a machine. Succeeds if it does not exist."""

    def complete(self, mark: str, remote: Remote) -> Asking[None]:
        """Give a machine that runs what it still lacks, such as a public address. May be repeated."""
        return None
        yield

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

    def status(self, reply: CloudReply) -> int:
        """The status that a reply means, for providers that report errors with status 200."""
        return reply.status

    def said(self, reply: CloudReply) -> tuple[str, str]:
        """The code and the message of an error."""
        code, words = said(reply.body)
        return code, words or reply.text

    def error(self, call: CloudCall, reply: CloudReply) -> TeraflockError:
        """The error of ours that a reply means."""
        return error_of(self.title, self.codes, self.status(reply), *self.said(reply))

    # Options

    def option(self, name: str) -> str:
        return self._options.get(name) or self.defaults.get(name, "")

    def needed(self, name: str) -> str:
        """An option that has no default."""
        if not (found := self.option(name)):
            raise CannotDo(
                f"Accounts at {self.title} need the option `{name}`",
                hint=f"Add the account with `--set {name}=VALUE`: {self.options.get(name, '')}",
            )
        return found

    @property
    def regions(self) -> list[str]:
        found = [each.strip() for each in self.needed("regions").split(",") if each.strip()]
        if not found:
            raise CannotDo("The option `regions` names no region", hint=self.options.get("regions", ""))
        return found

    def pairs(self, name: str) -> dict[str, str]:
        """An option of the form `NAME=VALUE,NAME=VALUE`. Required."""
        parts = [each.partition("=") for each in self.needed(name).split(",") if each.strip()]
        if any(not key.strip() or not value.strip() for key, _, value in parts):
            raise CannotDo(f"The option `{name}` is `NAME=VALUE,NAME=VALUE`", hint=self.options.get(name, ""))
        return {key.strip(): value.strip() for key, _, value in parts}

    def set_prices(self) -> dict[str, dict[str, int]]:
        """What the operator pays per hour, by type and mode, where the provider's API does not say it."""
        found: dict[str, dict[str, int]] = {}
        for key, amount in self.pairs("prices").items():
            type, _, mode = key.partition(":")
            found.setdefault(type, {})[mode or "on-demand"] = _price(amount)
        return found

    @property
    def disk_gb(self) -> int:
        text = self.option("disk_gb")
        if not text.isdecimal() or not 1 <= int(text) <= 100_000:
            raise BadInput(
                f"`disk_gb` is a number of GB, not `{text[:80]}`", hint="For example `disk_gb=128`"
            )
        return int(text)

    @property
    def disk_bytes(self) -> int:
        return self.disk_gb * GIB

    def ends_at(self, now: datetime) -> datetime | None:
        """When a machine that is rented now ends by itself; None: the provider cannot, or the operator set no limit."""
        text = self.option(HOURS) if self.has_time_limit else ""
        if not text:
            return None
        if not text.isdecimal() or not 1 <= int(text) <= HOURS_MAX:
            raise CannotDo(f"`{HOURS}` is a number of hours from 1 to {HOURS_MAX}, not `{text[:80]}`")
        return now + timedelta(hours=int(text))

    # Values

    def machine_type(
        self,
        name: str,
        region: str,
        *,
        gpu: tuple[str, int],
        gpus: int,
        vcpus: int,
        ram_bytes: int,
        prices: Mapping[str, int],
    ) -> MachineType:
        """A type of this cloud. `gpu` is the provider's name of the card and its GB (0: as in the catalog)."""
        id, memory_bytes = card(*gpu)
        return MachineType(
            name=name,
            region=region,
            gpu=id,
            gpus=gpus,
            gpu_memory_bytes=memory_bytes,
            vcpus=vcpus,
            ram_bytes=ram_bytes,
            disk_bytes=self.disk_bytes,
            prices=prices,
            currency=self.currency,
        )

    def remote(
        self, remote_id: str, token: str, seen: Seen, *, address: str = "", doing: str = "", **more: Any
    ) -> Remote:
        """A machine of ours as the provider lists it. Anything but text is an answer in an unknown form."""
        texts = (remote_id, token, address, more.get("zone", ""), more.get("type", ""), more.get("user", ""))
        if not all(isinstance(each, str) for each in texts):
            raise TypeError("a machine's id, address, zone or type is not a text")
        return sound(
            Remote(
                remote_id=remote_id,
                instance_id=token.partition(".")[0],
                token=token,
                seen=seen,
                doing="" if seen == Seen.RUNNING else one_line(doing),
                **{
                    "currency": self.currency,
                    "endpoints": {SSH_PORT: Endpoint(address, SSH_PORT)} if address else {},
                    "user": self.login,
                    **more,
                },
            )
        )

    def loose_disk(self, remote_id: str, size_gb: str | int, *, name: str, token: str) -> Leftover:
        """A disk that no machine has."""
        price = disk_price(self.kind, int(size_gb))
        return Leftover(
            kind="disk",
            remote_id=remote_id,
            name=name,
            token=token,
            price_micros_per_hour=price,
            currency=self.currency,
        )


def names(types: Sequence[MachineType]) -> str:
    count, regions = len({each.name for each in types}), len({each.region for each in types})
    return f"{count} machine types in {regions} regions"


def _price(text: str) -> int:
    try:
        micros = parse_micros(text)
    except ValueError:
        micros = 0
    if micros <= 0:
        raise CannotDo(f"`{text[:80]}` in the option `prices` is not a price per hour", hint=PRICES_OPTION)
    return micros


def micros_of(amount: float) -> int:
    """An amount per hour that a provider sends as a float."""
    return round(amount * 10**6)
