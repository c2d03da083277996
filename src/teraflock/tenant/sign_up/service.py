"""Sign-up: a stranger creates an organisation of their own and is signed in.

Invariants: the organisation, its owner, the password, the credit and the session are created in one transaction, or
none of them. The organisation pays in advance, so it can never owe more than it was given or paid in.
"""

from collections.abc import Callable

from teraflock.base.clock import Clock
from teraflock.base.errors import Conflict
from teraflock.base.names import check_member_name
from teraflock.storage.database import Database, Transaction
from teraflock.tenant.acts import Acts
from teraflock.tenant.model import Actor, KeyId, MemberId
from teraflock.tenant.organisation.service import OrganisationService
from teraflock.tenant.session.model import Browser, MadeSession, SessionLimits
from teraflock.tenant.session.rules import check_password, user_name_from
from teraflock.tenant.session.service import SessionService
from teraflock.tenant.session.store import is_user_name_taken
from teraflock.tenant.sign_up import rules, store
from teraflock.tenant.sign_up.model import SignUp, SignUpTerms, WelcomeGift


class SignUpService(Acts):
    def __init__(
        self,
        database: Database,
        clock: Clock,
        random_bytes: Callable[[int], bytes],
        sessions: SessionService,
        organisations: OrganisationService,
        gift: WelcomeGift,
        terms: SignUpTerms,
    ) -> None:
        super().__init__(database, clock, random_bytes)
        self._sessions = sessions
        self._organisations = organisations
        self._gift = gift
        self._terms = terms

    def gift(self) -> str:
        """The credit of a new organisation, as text. Empty: none."""
        with self._database.read() as tx:
            return self._gift.text(tx)

    def check(self, user_name: str, password: str) -> str:
        """Raise unless both could be accepted. Cheap: nothing is hashed. Returns the user name as it is stored."""
        name = user_name_from(user_name)
        check_member_name(name)
        check_password(password, name)
        return name

    def sign_up(self, user_name: str, password: str, browser: Browser) -> MadeSession:
        name = self.check(user_name, password)
        hashed = self._sessions.hashed(password)

        def work(tx: Transaction) -> MadeSession:
            now = self._clock.now()
            rules.check_per_day(store.count_since(tx, now - rules.DAY), self._terms.per_day_max)
            if is_user_name_taken(tx, name, MemberId("")):
                raise Conflict("This user name is taken", hint="Choose another one, or sign in with it")
            home = rules.organisation_name(name, self._random_bytes(4))
            made = self._organisations.put(tx, home, name, self._terms.quotas, is_operator=False)
            organisation = made.organisation.id
            store.put_sign_up(
                tx, SignUp(organisation_id=organisation, address=browser.address, created_at=now)
            )
            owner = Actor(
                key_id=KeyId(""), member_id=made.owner.id, member_name=name, roles=made.owner.roles,
                is_operator=False, organisation_id=organisation,
            )  # fmt: skip
            self._audit.record(tx, owner, "organisation.sign-up", organisation, None, address=browser.address)
            self._sessions.put_password(tx, owner, name, hashed)
            self._gift.give(tx, made.project.id)
            limits = SessionLimits(member_id=made.owner.id)
            return self._sessions.opened(tx, limits, browser, how="sign-up")

        return self._database.write(work)
