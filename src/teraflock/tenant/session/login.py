"""Passwords and second factors of members.

Invariants: passwords are hashed outside of transactions, because that takes time. A session with the limits of a key
sets neither a password nor a second factor. A new password ends all other sessions of the member.
"""

from collections.abc import Callable
from typing import Protocol

from msgspec.structs import replace

from teraflock.base.clock import Clock
from teraflock.base.errors import Conflict
from teraflock.storage.database import Database, Transaction
from teraflock.tenant.acts import Acts
from teraflock.tenant.model import Actor
from teraflock.tenant.session import rules, store
from teraflock.tenant.session.model import Login


class Passwords(Protocol):
    """Hashes passwords, slowly on purpose."""

    def hashed(self, password: str) -> str: ...

    def matches(self, hashed: str, password: str) -> bool:
        """Takes as long for a text that is not a hash."""
        ...


class LoginService(Acts):
    def __init__(
        self,
        database: Database,
        clock: Clock,
        random_bytes: Callable[[int], bytes],
        passwords: Passwords,
    ) -> None:
        super().__init__(database, clock, random_bytes)
        self._passwords = passwords

    def login_of(self, actor: Actor) -> Login | None:
        with self._database.read() as tx:
            return store.login_of(tx, actor.member_id)

    def set_password(self, actor: Actor, user_name: str, password: str, current: str = "") -> Login:
        """Set the user name and password of the actor. Who has a password must repeat it."""
        before = self.login_of(actor)
        if before is not None and not self._passwords.matches(before.password, current):
            raise rules.wrong_sign_in()
        name, hashed = self._hashed(user_name, password)
        return self._database.write(lambda tx: self.put_password(tx, actor, name, hashed))

    def set_totp(self, actor: Actor, secret: str, code: str) -> Login:
        """Turn the second factor on, after a code shows that the authenticator has the secret. Empty: turn it off."""
        rules.check_unlimited(actor)
        now = self._clock.now()
        step = rules.totp_step_of(rules.totp_secret_from(secret), code, now, 0) if secret else 0
        if step is None:
            raise rules.wrong_sign_in()

        def work(tx: Transaction) -> Login:
            login = store.login_of(tx, actor.member_id)
            if login is None:
                raise Conflict("A second factor needs a password", hint="Set a password first")
            changed = replace(login, totp_secret=secret, totp_step=step, changed_at=now)
            store.put_login(tx, changed)
            self._audit.record(tx, actor, "console.totp", actor.member_id, None, on=bool(secret))
            return changed

        return self._database.write(work)

    def check_password(self, actor: Actor, password: str) -> None:
        """Ask again for the password, before something that would lock its owner out."""
        login = self.login_of(actor)
        if login is None or not self._passwords.matches(login.password, password):
            raise rules.wrong_sign_in()

    def _hashed(self, user_name: str, password: str) -> tuple[str, str]:
        name = rules.user_name_from(user_name)
        rules.check_password(password, name)
        return name, self.hashed(password)

    def hashed(self, password: str) -> str:
        return self._passwords.hashed(password)

    def put_password(self, tx: Transaction, actor: Actor, name: str, hashed: str) -> Login:
        """Store a password. The caller has checked that it is the actor's choice."""
        rules.check_unlimited(actor)
        if store.is_user_name_taken(tx, name, actor.member_id):
            raise Conflict("This user name is taken", hint="Choose another one, such as your e-mail address")
        now = self._clock.now()
        old = store.login_of(tx, actor.member_id)
        login = Login(
            member_id=actor.member_id,
            user_name=name,
            password=hashed,
            totp_secret=old.totp_secret if old else "",
            totp_step=old.totp_step if old else 0,
            changed_at=now,
        )
        store.put_login(tx, login)
        store.end_other_sessions(tx, actor.member_id, actor.key_id, now)
        self._audit.record(tx, actor, "console.password", actor.member_id, None)
        return login
