"""An invitation for a host, the host's request, and what is stored about it."""

from collections.abc import Mapping
from datetime import datetime
from typing import Protocol, runtime_checkable

import msgspec


class CertificateAuthority(Protocol):
    """Signs the certificates of hosts."""

    @property
    def certificate(self) -> str:
        """Its own certificate in PEM format."""
        ...

    def issue(self, request: str, name: str, now: datetime) -> str: ...

    def request_key(self, request: str) -> str:
        """Identifies the key in a certificate request. Raise `BadInput` if the request is not valid."""
        ...

    def fingerprint(self, certificate: str) -> str: ...


class JoinPlace(msgspec.Struct, frozen=True, kw_only=True):
    """Where a new host finds the server."""

    server: str
    """Address and port."""
    fingerprint: str
    """SHA-256 of the server's certificate."""


class JoinDoor(Protocol):
    """The port for hosts that join."""

    @property
    def authority(self) -> CertificateAuthority: ...

    def join_place(self) -> JoinPlace:
        """Open the port if it is closed."""
        ...


class Package(msgspec.Struct, frozen=True, kw_only=True):
    """The program of this server, for its hosts."""

    version: str
    content: bytes
    """A compressed tar with the folder `teraflock`."""


@runtime_checkable
class UpgradableDriver(Protocol):
    """An engine on a host that joined."""

    def upgrade(self, package: Package) -> str:
        """Let the host install a version, and wait until it runs it. Return the version that it had.

        Guests keep running. Do nothing if the host already has the version.
        """
        ...


class HostUpgraded(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    before: str
    """The version that the host had."""
    version: str


class Invitation(msgspec.Struct, frozen=True, kw_only=True):
    token_hash: str
    name: str
    """The name for the host. Empty: its own host name."""
    address: str
    """At which the server reaches it. Empty: the address that it joins from."""
    trusted_wire: bool
    """Whether traffic between this host and others may be unencrypted."""
    created_at: datetime
    expires_at: datetime
    key_hash: str = ""
    """The key of the host that used the invitation. Empty: nobody did."""
    host: str = ""
    """The name of that host."""


class Invited(msgspec.Struct, frozen=True, kw_only=True):
    """A new invitation with its token, which is not stored."""

    token: str
    expires_at: datetime
    place: JoinPlace


class JoinRequest(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """What a new host sends to the server."""

    token: str
    version: str
    now: datetime
    hostname: str
    port: int
    """The port of its host program."""
    certificate_request: str
    cards: tuple[str, ...] = ()
    """UUIDs of its GPUs."""
    encrypts: bool = False
    """Whether it can encrypt traffic between hosts."""
    address: str = ""
    """At which the server reaches it, if the host knows better than the server."""


class JoinAnswer(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """What the server answers."""

    name: str
    address: str
    mark: str
    """The mark on everything that the installation creates."""
    certificate: str
    authority: str
    """The certificate of the installation's authority. The host accepts only its servers."""


class JoinedHost(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    """Also the name of its site."""
    number: int
    """Its place in the range of addresses between hosts."""
    certificate: str
    cards: tuple[str, ...]
    trusted_wire: bool
    joined_at: datetime


class HostLosses(msgspec.Struct, frozen=True, kw_only=True):
    """What was lost with a host that was removed."""

    instances: int = 0
    volumes: int = 0
    volumes_recovered: int = 0
    """Volumes whose copies on other hosts took their place."""


class Surrounding(msgspec.Struct, frozen=True, kw_only=True):
    """What a request to join is compared with."""

    version: str
    now: datetime
    names: frozenset[str]
    """Names of existing sites and hosts."""
    cards: Mapping[str, str]
    """The host of each known GPU, by the GPU's UUID."""
