"""What operators and new hosts ask for: invite a host, join, and remove a joined host.

Invariants:
- a joined host and its site are written and removed by one transaction;
- only the hash of a token is stored. A token is used by one key: the same host may repeat its request, for example
  after a crash, and gets its certificate again;
- a host is removed only when it is drained and has no instances and no volumes, or when it is lost (`losing.py`). The
  server then no longer accepts its certificate.
"""

import hashlib
import os
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Final

import msgspec

from teraflock.base.clock import Clock
from teraflock.base.errors import Conflict, Refused, not_found
from teraflock.base.events import new_event
from teraflock.base.names import check_place
from teraflock.fleet import store as fleet
from teraflock.fleet.left_behind import store as left_behind
from teraflock.fleet.model import Host, HostState
from teraflock.instance.engines import Engines
from teraflock.instance.join import losing, rules, store
from teraflock.instance.join.model import (
    CertificateAuthority,
    HostLosses,
    HostUpgraded,
    Invitation,
    Invited,
    JoinAnswer,
    JoinDoor,
    JoinedHost,
    JoinRequest,
    Package,
    Surrounding,
    UpgradableDriver,
)
from teraflock.instance.site import store as sites
from teraflock.instance.site.model import SiteRecord
from teraflock.instance.volume import store as volume_store
from teraflock.storage.database import Database, Transaction
from teraflock.storage.events import record_event
from teraflock.tenant.audit.acting import AuditedService
from teraflock.tenant.model import Actor

KIND: Final = "joined"
TOKEN_BYTES: Final = 20
KEPT_FOR: Final = timedelta(days=7)
"""A used or expired token gets a reason for that long, then it is unknown."""


class JoinService(AuditedService):
    def __init__(
        self,
        database: Database,
        clock: Clock,
        engines: Engines,
        door: JoinDoor,
        *,
        version: str,
        mark: str,
        package: Callable[[], Package],
        own_cards: Callable[[], Mapping[str, str]] = dict,
        random_bytes: Callable[[int], bytes] = os.urandom,
    ) -> None:
        """`own_cards` returns the GPUs of the server's own machine: the host of each UUID."""
        super().__init__(database, clock, random_bytes)
        self._engines = engines
        self._door = door
        self._version = version
        self._mark = mark
        self._package = package
        self._own_cards = own_cards

    def invite(
        self, actor: Actor, *, name: str = "", address: str = "", trusted_wire: bool = False
    ) -> Invited:
        """Create a token with which one host may join within an hour."""
        if name:
            check_place(name, "a host")
        if address:
            rules.check_address(address)
        place = self._door.join_place()
        token = self._random_bytes(TOKEN_BYTES).hex()
        now = self._clock.now()
        new = Invitation(
            token_hash=_hash(token),
            name=name,
            address=address,
            trusted_wire=trusted_wire,
            created_at=now,
            expires_at=now + rules.VALID_FOR,
        )

        def work(tx: Transaction) -> Invited:
            if name and name in self._names(tx):
                raise Conflict(f"There is already a host or site `{name}`", hint="Choose another name")
            store.forget_invitations(tx, now - KEPT_FOR)
            store.insert_invitation(tx, new)
            self._audit.record(tx, actor, "host.invite", name or "any", address=address)
            return Invited(token=token, expires_at=new.expires_at, place=place)

        return self._database.write(work)

    def has_open_invitations(self) -> bool:
        with self._database.read() as tx:
            return store.open_invitations(tx, self._clock.now()) > 0

    def join(self, request: JoinRequest, source: str) -> JoinAnswer:
        """Let a host join. `source` is the address that its request came from."""
        authority, own_cards = self._door.authority, self._own_cards()
        key_hash = authority.request_key(request.certificate_request)
        token_hash = _hash(request.token)

        def work(tx: Transaction) -> JoinAnswer:
            found = store.invitation(tx, token_hash)
            if found is None:
                raise Refused("This token is not valid here", hint="Get a new one with `tera host add`")
            repeated = self._repeated(tx, found, key_hash)
            if repeated is not None:
                return repeated
            rules.check(found, request, self._surrounding(tx, own_cards))
            return self._admit(tx, authority, found, request, key_hash, source)

        return self._database.write(work)

    def remove(self, actor: Actor, ref: str) -> str:
        """Remove a joined host that is drained and has no instances and no volumes. Return its name."""

        def work(tx: Transaction) -> str:
            host, name = fleet.host(tx, ref), _joined_name(tx, ref)
            if host is not None:
                fleet.lock_hosts(tx, [host.id])  # no launch claims room there meanwhile
                _refuse_used(tx, fleet.host(tx, host.id) or host)
                left_behind.forget(
                    tx, left_behind.on_hosts(tx, [host.id])
                )  # it has no link to any network now
            self._forget(tx, name, host)
            self._audit.record(tx, actor, "host.remove", host.id if host else name, name=name)
            return name

        return self._database.write_with_locks(work)

    def remove_lost(self, actor: Actor, ref: str) -> HostLosses:
        """Remove a joined host that will never return, and end everything that was on it."""

        def work(tx: Transaction) -> HostLosses:
            host, name = fleet.host(tx, ref), _joined_name(tx, ref)
            losses, now = HostLosses(), self._clock.now()
            if host is not None:
                losing.check_lost(tx, host, now)
                losses = losing.give_up(tx, host, now, self._random_bytes)
            self._forget(tx, name, host)
            details = {key: str(value) for key, value in msgspec.structs.asdict(losses).items()}
            self._audit.record(tx, actor, "host.remove-lost", host.id if host else name, name=name, **details)
            return losses

        return self._database.write(work)

    def _forget(self, tx: Transaction, name: str, host: Host | None) -> None:
        if host is not None:
            fleet.mark_removed(tx, host.id, self._clock.now())
        store.remove(tx, name)
        sites.remove(tx, name)

    def upgrade(self, actor: Actor, ref: str) -> HostUpgraded:
        """Let a joined host install the version of this server, and restart. Its guests keep running."""
        with self._database.read() as tx:
            name = _joined_name(tx, ref)
        before = self._upgradable(name).upgrade(self._package())
        if before != self._version:
            self._database.write(
                lambda tx: self._audit.record(
                    tx, actor, "host.upgrade", name, before=before, version=self._version
                )
            )
        return HostUpgraded(name=name, before=before, version=self._version)

    def _upgradable(self, name: str) -> UpgradableDriver:
        driver = self._engines.at(name)
        if not isinstance(driver, UpgradableDriver):
            raise Refused(f"`{name}` cannot be upgraded from here")
        return driver

    def _repeated(self, tx: Transaction, found: Invitation, key_hash: str) -> JoinAnswer | None:
        """The answer that this key got before: the host may have crashed before it could store it."""
        if found.key_hash != key_hash:
            return None
        joined = next((each for each in store.joined(tx) if each.name == found.host), None)
        record = next((each for each in sites.records(tx) if each.name == found.host), None)
        if joined is None or record is None:
            return None
        return self._answer(joined, record.options["address"])

    def _admit(
        self,
        tx: Transaction,
        authority: CertificateAuthority,
        invitation: Invitation,
        request: JoinRequest,
        key_hash: str,
        source: str,
    ) -> JoinAnswer:
        now, name = self._clock.now(), rules.name_of(invitation, request)
        address = invitation.address or request.address or source
        rules.check_address(address)
        host = JoinedHost(
            name=name,
            number=max((each.number for each in store.joined(tx)), default=0) + 1,
            certificate=authority.issue(request.certificate_request, name, now),
            cards=request.cards,
            trusted_wire=invitation.trusted_wire,
            joined_at=now,
        )
        options = {
            "address": address,
            "port": str(request.port),
            "fingerprint": authority.fingerprint(host.certificate),
        }
        store.insert(tx, host)
        sites.insert(tx, SiteRecord(name=name, kind=KIND, options=options), now)
        store.use_invitation(tx, invitation.token_hash, key_hash, name)
        record_event(tx, new_event("host.joined", name, now, self._random_bytes, {"address": address}))
        return self._answer(host, address)

    def _answer(self, host: JoinedHost, address: str) -> JoinAnswer:
        return JoinAnswer(
            name=host.name,
            address=address,
            mark=self._mark,
            certificate=host.certificate,
            authority=self._door.authority.certificate,
        )

    def _surrounding(self, tx: Transaction, own_cards: Mapping[str, str]) -> Surrounding:
        cards = {card: each.name for each in store.joined(tx) for card in each.cards}
        return Surrounding(
            version=self._version,
            now=self._clock.now(),
            names=self._names(tx),
            cards={**cards, **own_cards},
        )

    def _names(self, tx: Transaction) -> frozenset[str]:
        hosts = (host.name for host in fleet.outlines(tx))
        kept = (record.name for record in sites.records(tx))
        return frozenset({*hosts, *kept, *self._engines.records, *(driver.site for driver in self._engines)})


def _joined_name(tx: Transaction, ref: str) -> str:
    """The name of a joined host, also if it has not reported yet."""
    host = fleet.host(tx, ref)
    name = host.site if host else ref
    known = [each.name for each in store.joined(tx)]
    if host is not None and name not in known:
        raise Refused(
            f"`{host.name}` did not join with `tera host join`",
            hint=f"It belongs to the site `{host.site}`: see `tera site list`",
        )
    if name not in known:
        raise not_found("host", ref, known, see="`tera host list` lists them")
    return name


def _refuse_used(tx: Transaction, host: Host) -> None:
    if instances := sites.counts(tx).get(host.site, (0, 0))[1]:
        raise Conflict(
            f"`{host.name}` still has instances: {instances}",
            hint=f"`tera host drain {host.name}`, then delete or move them. If the host will never return:"
            f" `tera host remove {host.name} --lost`",
        )
    if volumes := volume_store.count_on_host_in_all_projects(tx, host.id):
        raise Conflict(
            f"`{host.name}` still has volumes: {volumes}",
            hint="Delete them, or recover those that have a copy on another host: `tera volume recover`",
        )
    if host.state == HostState.READY:
        raise Conflict(
            f"`{host.name}` still accepts new instances", hint=f"First run `tera host drain {host.name}`"
        )


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()
