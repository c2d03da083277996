"""Sign-in by an identity provider.

Invariants:
- an attempt belongs to the browser that started it, ends after ten minutes, and works once;
- an identity is connected to a member only after the person agreed to that organisation, so nobody gets into an
  organisation of a stranger who added their e-mail address;
- only a verified e-mail address finds a member or lets a person join. Removed members do not join again by themselves;
- an operator's account has to be connected from inside: an e-mail address alone never opens it.
"""

import hmac
from collections.abc import Callable
from typing import Final, TypeVar

import msgspec

from teraflock.base.clock import Clock
from teraflock.base.errors import NotAuthenticated, Refused
from teraflock.base.ids import new_id
from teraflock.storage.database import Database, Transaction
from teraflock.tenant.acts import Acts
from teraflock.tenant.identity import rules, store
from teraflock.tenant.identity.model import (
    Arrival,
    Attempt,
    ConfirmedIdentity,
    IdentityProvider,
    Joining,
    MemberChoice,
    MemberIdentity,
    Returned,
    Sealing,
    WaitingIdentity,
)
from teraflock.tenant.key.secret import digest_of
from teraflock.tenant.member import store as members
from teraflock.tenant.model import Actor, KeyId, Member, MemberId, OrganisationState
from teraflock.tenant.organisation.store import organisation_by_name
from teraflock.tenant.session.model import Browser, MadeSession, SessionLimits
from teraflock.tenant.session.rules import check_unlimited
from teraflock.tenant.session.service import SessionService

Kept = TypeVar("Kept", Attempt, WaitingIdentity)
_ATTEMPT: Final = "an attempt to sign in"
_WAITING: Final = "an identity that waits"


class IdentityService(Acts):
    def __init__(
        self,
        database: Database,
        clock: Clock,
        random_bytes: Callable[[int], bytes],
        sessions: SessionService,
        provider: IdentityProvider,
        sealing: Sealing,
        joining: Joining,
    ) -> None:
        super().__init__(database, clock, random_bytes)
        self._sessions = sessions
        self._provider = provider
        self._sealing = sealing
        self._joining = joining

    @property
    def name(self) -> str:
        """The provider, as buttons show it."""
        return self._provider.name

    def begin(self, next: str, *, is_connecting: bool = False) -> tuple[str, str]:
        """The address of the provider to go to, and the encrypted attempt for the browser to keep."""
        attempt = Attempt(
            state=self._random_bytes(32).hex(),
            nonce=self._random_bytes(32).hex(),
            verifier=self._random_bytes(32).hex(),
            next=next if len(next) <= rules.NEXT_CHARACTERS_MAX else "",
            expires_at=self._clock.now() + rules.ATTEMPT_LIFE,
            is_connecting=is_connecting,
        )
        return self._provider.address(attempt), self._sealed(attempt, _ATTEMPT)

    def arrive(self, kept: str, returned: Returned, browser: Browser) -> Arrival:
        """After the return from the provider: sign in, or ask as which member."""
        attempt = self._opened(kept, Attempt, _ATTEMPT)
        if not hmac.compare_digest(returned.state.encode(), attempt.state.encode()):
            raise rules.wrong_attempt()
        self._provider.check_issuer(returned.issuer)
        if returned.error or not returned.code:
            raise NotAuthenticated(
                "The identity provider did not sign you in", hint="Start again, or sign in in another way"
            )
        self._use(attempt.state, attempt)
        identity = self._provider.identity(returned.code, attempt)
        if attempt.is_connecting:
            return self._asked(identity, attempt.next, (), is_connecting=True)
        return self._signed_in(identity, attempt.next, browser)

    def choose(self, kept: str, member: str, browser: Browser) -> tuple[MadeSession, str]:
        """Sign in as the member that the person chose, and remember it. Also returns the page to open."""
        waiting = self._opened(kept, WaitingIdentity, _WAITING)
        identity = waiting.identity

        def work(tx: Transaction) -> MadeSession:
            if not store.use_once(tx, digest_of(waiting.number), waiting.expires_at):
                raise rules.wrong_attempt()
            found = next((each for each in self._choices(tx, identity) if each.member_id == member), None)
            if found is None:
                raise rules.no_member(identity)
            id = MemberId(found.member_id) if found.member_id else self._joined(tx, identity).id
            self._connect(tx, identity, id)
            return self._sessions.opened(tx, SessionLimits(member_id=id), browser, how="oidc")

        return self._database.write(work), waiting.next

    def look(self, kept: str) -> ConfirmedIdentity | None:
        """The confirmed identity that a browser keeps, without using it."""
        try:
            return self._opened(kept, WaitingIdentity, _WAITING).identity if kept else None
        except NotAuthenticated:
            return None

    def connect(self, actor: Actor, kept: str) -> ConfirmedIdentity:
        """Let an identity sign in as the actor from now on."""
        check_unlimited(actor)
        waiting = self._opened(kept, WaitingIdentity, _WAITING)

        def work(tx: Transaction) -> ConfirmedIdentity:
            if not store.use_once(tx, digest_of(waiting.number), waiting.expires_at):
                raise rules.wrong_attempt()
            self._connect(tx, waiting.identity, actor.member_id)
            self._audit.record(
                tx, actor, "console.connect", actor.member_id, None, email=waiting.identity.email
            )
            return waiting.identity

        return self._database.write(work)

    def disconnect(self, actor: Actor) -> None:
        """Remove all identities of the actor. Other ways to sign in stay."""
        check_unlimited(actor)

        def work(tx: Transaction) -> None:
            if store.forget_identities(tx, actor.member_id):
                self._audit.record(tx, actor, "console.disconnect", actor.member_id, None)

        self._database.write(work)

    def identities_of(self, actor: Actor) -> tuple[MemberIdentity, ...]:
        with self._database.read() as tx:
            return store.identities_of(tx, actor.member_id)

    # Inside

    def _signed_in(self, identity: ConfirmedIdentity, next: str, browser: Browser) -> Arrival:
        def work(tx: Transaction) -> MadeSession | tuple[MemberChoice, ...]:
            found = self._choices(tx, identity)
            if not found:
                raise rules.no_member(identity)
            if len(found) > 1 or not found[0].is_connected:
                return found
            limits = SessionLimits(member_id=MemberId(found[0].member_id))
            return self._sessions.opened(tx, limits, browser, how="oidc")

        done = self._database.write(work)
        if isinstance(done, MadeSession):
            return Arrival(identity=identity, next=next, session=done)
        return self._asked(identity, next, done)

    def _choices(self, tx: Transaction, identity: ConfirmedIdentity) -> tuple[MemberChoice, ...]:
        found = store.choices(tx, identity.issuer, identity.subject, identity.email, limit=rules.CHOICES_MAX)
        home = organisation_by_name(tx, self._joining.organisation)
        if not rules.may_join(identity, self._joining) or home is None:
            return found
        is_known = any(each.organisation_name == home.name for each in found)
        was_removed = members.removed_member(tx, home.id, identity.email) is not None
        if is_known or was_removed or home.state != OrganisationState.ACTIVE:
            return found
        return (*found, MemberChoice(member_id="", member_name=identity.email, organisation_name=home.name))

    def _joined(self, tx: Transaction, identity: ConfirmedIdentity) -> Member:
        home = organisation_by_name(tx, self._joining.organisation)
        assert home is not None, "the choice was found in this transaction"
        now = self._clock.now()
        member = Member(
            id=MemberId(new_id("mem", now, self._random_bytes)),
            organisation_id=home.id,
            name=identity.email,
            is_operator=False,
            roles={"": self._joining.role},
            created_at=now,
        )
        members.put_member(tx, member)
        itself = Actor(
            key_id=KeyId(""), member_id=member.id, member_name=member.name, roles=member.roles, is_operator=False,
            organisation_id=home.id,
        )  # fmt: skip
        self._audit.record(tx, itself, "member.join", member.id, None, role=self._joining.role.value)
        return member

    def _connect(self, tx: Transaction, identity: ConfirmedIdentity, member: MemberId) -> None:
        store.put_identity(
            tx,
            MemberIdentity(
                issuer=identity.issuer,
                subject=identity.subject,
                member_id=member,
                email=identity.email,
                created_at=self._clock.now(),
            ),
        )

    def _asked(
        self,
        identity: ConfirmedIdentity,
        next: str,
        choices: tuple[MemberChoice, ...],
        *,
        is_connecting: bool = False,
    ) -> Arrival:
        waiting = WaitingIdentity(
            identity=identity,
            number=self._random_bytes(32).hex(),
            next=next,
            expires_at=self._clock.now() + rules.ATTEMPT_LIFE,
        )
        return Arrival(
            identity=identity,
            next=next,
            choices=choices,
            sealed=self._sealed(waiting, _WAITING),
            is_connecting=is_connecting,
        )

    def _use(self, state: str, attempt: Attempt) -> None:
        if not self._database.write(lambda tx: store.use_once(tx, digest_of(state), attempt.expires_at)):
            raise rules.wrong_attempt()

    def _sealed(self, value: Attempt | WaitingIdentity, kind: str) -> str:
        return self._sealing.seal(msgspec.json.encode(value).decode(), bound_to=kind)

    def _opened(self, kept: str, type: type[Kept], kind: str) -> Kept:
        try:
            found = msgspec.json.decode(self._sealing.open(kept, bound_to=kind), type=type)
        except (Refused, msgspec.DecodeError, UnicodeError):
            raise rules.wrong_attempt() from None
        if found.expires_at <= self._clock.now():
            raise rules.wrong_attempt()
        return found
