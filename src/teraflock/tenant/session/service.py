"""Sign-in to the console, and the sessions that follow.

Invariants:
- a session is never wider than what it was opened with: an API key, or a link created with a key or a session. It ends
  when that key is revoked or expires, and when its member is removed;
- a link opens one session; of two browsers that use it at once, one gets the session;
- a failed sign-in says only that it failed.
"""

from datetime import datetime
from typing import Final

from msgspec.structs import replace

from teraflock.base.errors import Forbidden, NotFound
from teraflock.base.ids import new_id
from teraflock.storage.database import Transaction
from teraflock.tenant.identity.store import forget_used
from teraflock.tenant.key.rules import key_within
from teraflock.tenant.key.secret import digest_of, id_of, is_secret, new_secret
from teraflock.tenant.key.service import holder_of_new, may_change_all
from teraflock.tenant.key.store import actor_of_key
from teraflock.tenant.member.store import members_of_any_organisation
from teraflock.tenant.model import Actor, KeyId
from teraflock.tenant.organisation.rules import check_active
from teraflock.tenant.session import rules, store
from teraflock.tenant.session.login import LoginService
from teraflock.tenant.session.model import (
    Browser,
    ConsoleSession,
    LinkId,
    MadeLink,
    MadeSession,
    OpenedLink,
    SessionId,
    SessionLimits,
    SignInLink,
)

_PASSWORD_OF_NOBODY: Final = "$nobody"  # noqa: S105 -- never a hash, so nothing matches it


class SessionService(LoginService):
    # Ways to sign in

    def sign_in(self, user_name: str, password: str, code: str, browser: Browser) -> MadeSession:
        """With a user name and a password, and a code if the member has a second factor."""
        with self._database.read() as tx:
            login = store.login(tx, user_name.strip().lower())
        hashed = login.password if login else _PASSWORD_OF_NOBODY
        if not self._passwords.matches(hashed, password[: rules.PASSWORD_CHARACTERS_MAX]) or login is None:
            raise rules.wrong_sign_in()
        step = 0
        if login.totp_secret:
            found = rules.totp_step_of(login.totp_secret, code, self._clock.now(), login.totp_step)
            if found is None:
                raise rules.wrong_sign_in()
            step = found

        def work(tx: Transaction) -> MadeSession:
            now = store.login_of(tx, login.member_id)
            if now is None or now.password != login.password:
                raise rules.wrong_sign_in()  # it changed meanwhile
            if step and not store.use_totp_step(tx, login.member_id, step):
                raise rules.wrong_sign_in()
            return self.opened(tx, SessionLimits(member_id=login.member_id), browser, how="password")

        return self._database.write(work)

    def sign_in_with_key(self, secret: str, browser: Browser) -> MadeSession:
        id = id_of(secret.strip())

        def work(tx: Transaction) -> MadeSession:
            is_key = id is not None and id.startswith("key_")
            found = actor_of_key(tx, KeyId(id or ""), self._clock.now()) if is_key else None
            if found is None or not is_secret(secret.strip(), found[1]):
                raise rules.wrong_sign_in()
            return self.opened(tx, _limits(found[0], found[0].key_id), browser, how="key")

        return self._database.write(work)

    def sign_in_with_link(self, secret: str, browser: Browser) -> MadeSession:
        def work(tx: Transaction) -> MadeSession:
            link = self._link(tx, secret)
            if not store.use_link(tx, link.id, self._clock.now()):
                raise rules.wrong_link()
            return self.opened(tx, link.limits, browser, how="link")

        return self._database.write(work)

    def accept_link(self, secret: str, user_name: str, password: str, browser: Browser) -> MadeSession:
        """Sign in with a link and set a password, also where the member forgot the old one."""
        name, hashed = self._hashed(user_name, password)

        def work(tx: Transaction) -> MadeSession:
            link = self._link(tx, secret)
            if not store.use_link(tx, link.id, self._clock.now()):
                raise rules.wrong_link()
            made = self.opened(tx, link.limits, browser, how="link")
            found = store.actor_of_session(tx, made.session.id, self._clock.now())
            assert found is not None, "the session was opened in this transaction"
            self.put_password(tx, found[0], name, hashed)
            return made

        return self._database.write(work)

    def sign_out(self, actor: Actor) -> None:
        """End the session in use."""
        self._database.write(lambda tx: store.revoke_session(tx, actor.key_id, self._clock.now()))

    # Links

    def make_link(self, actor: Actor, member: str = "") -> MadeLink:
        """A link that signs in as this member, once. For another member it is an invitation and lives longer."""

        def work(tx: Transaction) -> MadeLink:
            holder = holder_of_new(tx, actor, member, "sign-in links")
            check_active(tx, holder.organisation_id)
            is_own = holder.id == actor.member_id
            now = self._clock.now()
            link = SignInLink(
                id=LinkId(new_id("lnk", now, self._random_bytes)),
                limits=replace(
                    _limits(actor, self._key_of(tx, actor) if is_own else ""), member_id=holder.id
                ),
                created_at=now,
                expires_at=now + (rules.LINK_LIFE if is_own else rules.INVITATION_LIFE),
            )
            secret = new_secret(link.id, self._random_bytes)
            store.put_link(tx, link, digest_of(secret))
            self._audit.record_in(
                tx,
                holder.organisation_id,
                actor,
                "console.link",
                link.id,
                actor.project_id,
                member=holder.name,
            )
            return MadeLink(link=link, secret=secret)

        return self._database.write(work)

    def look_at_link(self, secret: str) -> OpenedLink:
        """Whom a link signs in, without using it."""
        with self._database.read() as tx:
            id = self._link(tx, secret).limits.member_id
            member, home = members_of_any_organisation(tx, id, limit=1)[0]
            has_password = store.login_of(tx, id) is not None
        return OpenedLink(member_name=member.name, organisation_name=home, has_password=has_password)

    # Sessions

    def page(self, actor: Actor, *, after: str = "", limit: int) -> tuple[ConsoleSession, ...]:
        """Open sessions: the actor's own, or for owners all of the organisation."""
        member = None if may_change_all(actor) else actor.member_id
        with self._database.read() as tx:
            return store.sessions(
                tx, actor.organisation_id, member, self._clock.now(), after=after, limit=limit
            )

    def own(self, actor: Actor, *, limit: int) -> tuple[ConsoleSession, ...]:
        """The newest open sessions of the actor, with the one in use first."""
        with self._database.read() as tx:
            found = store.newest_sessions(tx, actor.member_id, self._clock.now(), limit=limit)
            used = store.session(tx, actor.organisation_id, actor.key_id)
        others = tuple(each for each in found if str(each.id) != actor.key_id)
        return (used, *others)[:limit] if used else others

    def revoke(self, actor: Actor, id: str) -> ConsoleSession:
        """End a session. Its next request fails."""

        def work(tx: Transaction) -> ConsoleSession:
            found = store.session(tx, actor.organisation_id, id)
            if found is None or not (found.limits.member_id == actor.member_id or may_change_all(actor)):
                raise NotFound("There is no such session", hint="`tera console sessions` lists them")
            if key_within(actor, found.limits.project_id, found.limits.role_max, actor.expires_at):
                raise Forbidden(
                    "The key in use may not end a session with wider limits",
                    hint="Use that session itself, or a key without limits",
                )
            if found.revoked_at is not None:
                return found
            now = self._clock.now()
            store.revoke_session(tx, found.id, now)
            self._audit.record(tx, actor, "console.revoke", found.id, None, member=found.limits.member_id)
            return replace(found, revoked_at=now)

        return self._database.write(work)

    def forget_old(self, before: datetime) -> int:
        """Delete sessions and links that ended before this time."""
        return self._database.write(lambda tx: store.forget_before(tx, before))

    def forget_used(self) -> int:
        """Delete what remembers that something was used once, after it has expired."""
        return self._database.write(lambda tx: forget_used(tx, self._clock.now()))

    # Shared

    def _link(self, tx: Transaction, secret: str) -> SignInLink:
        id = id_of(secret)
        found = store.link(tx, id, self._clock.now()) if id and id.startswith("lnk_") else None
        if found is None or not is_secret(secret, found[1]):
            raise rules.wrong_link()
        return found[0]

    def opened(self, tx: Transaction, limits: SessionLimits, browser: Browser, *, how: str) -> MadeSession:
        """Open a session. The caller has checked who it is for."""
        now = self._clock.now()
        session = ConsoleSession(
            id=SessionId(new_id("ses", now, self._random_bytes)),
            limits=limits,
            created_at=now,
            expires_at=now + rules.SESSION_LIFE,
            address=browser.address,
            agent=browser.agent[: rules.AGENT_CHARACTERS_MAX],
        )
        secret = new_secret(session.id, self._random_bytes)
        store.put_session(tx, session, digest_of(secret))
        found = store.actor_of_session(tx, session.id, now)
        if found is None:  # the member was removed meanwhile
            raise rules.wrong_sign_in()
        self._audit.record(
            tx, found[0], "console.sign-in", session.id, None, how=how, address=browser.address
        )
        return MadeSession(session=session, secret=secret)

    def _key_of(self, tx: Transaction, actor: Actor) -> str:
        """The API key in use, or the one that the session in use was opened with."""
        if actor.key_id.startswith("key_"):
            return actor.key_id
        session = store.session(tx, actor.organisation_id, actor.key_id)
        return session.limits.key_id if session else ""


def _limits(actor: Actor, key_id: str) -> SessionLimits:
    return SessionLimits(
        member_id=actor.member_id,
        key_id=key_id,
        project_id=actor.project_id,
        role_max=actor.role_max,
        limit_expires_at=actor.expires_at,
    )
