"""Sign-in on both databases: sessions are never wider than what opened them, links work once, passwords stay secret."""

from datetime import UTC, datetime, timedelta
from random import Random

import pytest
from tests.contract.tenant.test_tenants import at_once
from tests.unit.tenant.ticking import TickingClock

from teraflock.base.clock import FixedClock
from teraflock.base.errors import BadInput, Conflict, Forbidden, NotAuthenticated, NotFound
from teraflock.storage.database import Database
from teraflock.tenant.model import Actor, Role
from teraflock.tenant.service import TenantService
from teraflock.tenant.session.model import Browser, MadeSession
from teraflock.tenant.session.rules import (
    INVITATION_LIFE,
    LINK_LIFE,
    SESSION_LIFE,
    TOTP_SECONDS,
    totp_code,
)
from teraflock.tenant.session.service import SessionService

NOW = datetime(2026, 11, 16, 9, tzinfo=UTC)
BROWSER = Browser("192.0.2.7", "Firefox")
PASSWORD = "four plain words here"
TOTP = "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ"


class PlainPasswords:
    """Stands in for argon2id, which is slow on purpose."""

    def hashed(self, password: str) -> str:
        return f"hash of {password}"

    def matches(self, hashed: str, password: str) -> bool:
        return hashed == f"hash of {password}"


@pytest.fixture
def clock() -> FixedClock:
    return TickingClock(NOW)


@pytest.fixture
def tenants(database: Database, clock: FixedClock) -> TenantService:
    return TenantService(database, clock, Random(7).randbytes)


@pytest.fixture
def sessions(database: Database, clock: FixedClock, tenants: TenantService) -> SessionService:
    return SessionService(database, clock, Random(8).randbytes, PlainPasswords())


@pytest.fixture
def owner_key(tenants: TenantService) -> str:
    secret = tenants.install().secret
    assert secret is not None
    return tenants.organisations.make(tenants.authenticate(secret), "acme", "ann@acme").key.secret


@pytest.fixture
def ann(tenants: TenantService, owner_key: str) -> Actor:
    return tenants.authenticate(owner_key)


def invited(tenants: TenantService, sessions: SessionService, ann: Actor, name: str = "bob") -> MadeSession:
    tenants.members.make(ann, name, Role.MEMBER)
    link = sessions.make_link(ann, name)
    return sessions.accept_link(link.secret, name, PASSWORD, BROWSER)


def test_a_session_of_a_key_has_the_limits_of_the_key(
    tenants: TenantService, sessions: SessionService, ann: Actor
) -> None:
    life = timedelta(hours=3)
    key = tenants.keys.make(ann, "ci", project="default", role_max=Role.VIEWER, life=life)
    actor = tenants.authenticate(sessions.sign_in_with_key(key.secret, BROWSER).secret)
    assert (actor.role_max, actor.project_id, actor.expires_at) == (
        Role.VIEWER,
        key.key.project_id,
        key.key.expires_at,
    )
    assert not actor.is_operator
    with pytest.raises(Forbidden):
        tenants.keys.make(actor, "wider")


def test_a_session_ends_with_the_key_that_opened_it(
    tenants: TenantService, sessions: SessionService, ann: Actor
) -> None:
    key = tenants.keys.make(ann, "laptop")
    by_key = sessions.sign_in_with_key(key.secret, BROWSER)
    holder = tenants.authenticate(key.secret)
    by_link = sessions.sign_in_with_link(sessions.make_link(holder).secret, BROWSER)
    inner = sessions.sign_in_with_link(
        sessions.make_link(tenants.authenticate(by_link.secret)).secret, BROWSER
    )
    unused = sessions.make_link(holder)
    tenants.keys.revoke(ann, key.key.id)
    for made in (by_key, by_link, inner):
        with pytest.raises(NotAuthenticated):
            tenants.authenticate(made.secret)
    with pytest.raises(NotAuthenticated):
        sessions.sign_in_with_link(unused.secret, BROWSER)


def test_a_session_ends_when_it_expires_is_revoked_or_its_member_is_removed(
    tenants: TenantService, sessions: SessionService, ann: Actor, clock: FixedClock
) -> None:
    bob = invited(tenants, sessions, ann)
    tenants.members.remove(ann, "bob")
    with pytest.raises(NotAuthenticated):
        tenants.authenticate(bob.secret)
    tenants.members.make(ann, "bob", Role.OWNER)
    with pytest.raises(NotAuthenticated):
        tenants.authenticate(bob.secret)
    with pytest.raises(NotAuthenticated):
        sessions.sign_in("bob", PASSWORD, "", BROWSER)
    cat = invited(tenants, sessions, ann, "cat")
    sessions.revoke(ann, cat.session.id)
    with pytest.raises(NotAuthenticated):
        tenants.authenticate(cat.secret)
    dan = invited(tenants, sessions, ann, "dan")
    clock.move(SESSION_LIFE)
    with pytest.raises(NotAuthenticated):
        tenants.authenticate(dan.secret)


def test_a_link_opens_one_session_even_if_two_browsers_use_it_at_once(
    sessions: SessionService, ann: Actor
) -> None:
    link = sessions.make_link(ann)
    results = at_once([lambda: sessions.sign_in_with_link(link.secret, BROWSER)] * 4)
    assert sum(isinstance(each, MadeSession) for each in results) == 1
    with pytest.raises(NotAuthenticated):
        sessions.look_at_link(link.secret)


def test_looking_at_a_link_does_not_use_it(sessions: SessionService, ann: Actor) -> None:
    link = sessions.make_link(ann)
    for _ in range(2):
        assert sessions.look_at_link(link.secret).member_name == "ann@acme"
    sessions.sign_in_with_link(link.secret, BROWSER)


@pytest.mark.parametrize(("member", "life"), [("", LINK_LIFE), ("bob", INVITATION_LIFE)])
def test_a_link_expires(
    tenants: TenantService,
    sessions: SessionService,
    ann: Actor,
    clock: FixedClock,
    member: str,
    life: timedelta,
) -> None:
    tenants.members.make(ann, "bob", Role.MEMBER)
    link = sessions.make_link(ann, member)
    clock.move(life)
    with pytest.raises(NotAuthenticated):
        sessions.sign_in_with_link(link.secret, BROWSER)


def test_only_owners_invite_others(tenants: TenantService, sessions: SessionService, ann: Actor) -> None:
    bob = tenants.authenticate(invited(tenants, sessions, ann).secret)
    with pytest.raises(Forbidden):
        sessions.make_link(bob, "ann@acme")
    assert sessions.make_link(bob).link.limits.member_id == bob.member_id


def test_a_limited_key_cannot_become_a_password(
    tenants: TenantService, sessions: SessionService, ann: Actor
) -> None:
    """A password has no limits: setting one would widen a key that is limited to a role."""
    capped = tenants.authenticate(tenants.keys.make(ann, "capped", role_max=Role.VIEWER).secret)
    link = sessions.make_link(capped)
    with pytest.raises(Forbidden):
        sessions.accept_link(link.secret, "ann", PASSWORD, BROWSER)
    session = tenants.authenticate(sessions.sign_in_with_link(link.secret, BROWSER).secret)
    assert session.role_max == Role.VIEWER
    with pytest.raises(Forbidden):
        sessions.set_password(session, "ann", PASSWORD)
    with pytest.raises(Forbidden):
        sessions.set_totp(session, "", "")
    with pytest.raises(Forbidden):
        sessions.revoke(
            capped, sessions.sign_in_with_link(sessions.make_link(ann).secret, BROWSER).session.id
        )


def test_a_password_signs_in_and_a_new_one_ends_the_other_sessions(
    tenants: TenantService, sessions: SessionService, ann: Actor
) -> None:
    first = invited(tenants, sessions, ann)
    second = sessions.sign_in(" BOB ", PASSWORD, "", BROWSER)
    bob = tenants.authenticate(second.secret)
    with pytest.raises(NotAuthenticated):
        sessions.set_password(bob, "bob", "another good one", "not the current one")
    sessions.set_password(bob, "bob@new", "another good one", PASSWORD)
    assert tenants.authenticate(second.secret) == bob
    with pytest.raises(NotAuthenticated):
        tenants.authenticate(first.secret)
    for name, password in (("bob", PASSWORD), ("bob@new", PASSWORD), ("nobody", PASSWORD), ("bob@new", "")):
        with pytest.raises(NotAuthenticated, match="Wrong user name, password or code"):
            sessions.sign_in(name, password, "", BROWSER)
    sessions.sign_in("bob@new", "another good one", "", BROWSER)


def test_a_user_name_belongs_to_one_member_of_the_installation(
    tenants: TenantService, sessions: SessionService, ann: Actor
) -> None:
    bob = tenants.authenticate(invited(tenants, sessions, ann).secret)
    results = at_once(
        [
            lambda: sessions.set_password(ann, "shared", PASSWORD),
            lambda: sessions.set_password(bob, "shared", "another good one", PASSWORD),
        ]
    )
    assert sum(isinstance(each, Conflict) for each in results) == 1, results


@pytest.mark.parametrize("password", ["short", "aaaaaaaaaaaaaa", "bob@acme-bob@acme", "x" * 257])
def test_weak_passwords_are_refused(sessions: SessionService, ann: Actor, password: str) -> None:
    with pytest.raises(BadInput):
        sessions.set_password(ann, "bob@acme", password)


@pytest.mark.parametrize("name", ["", "a", "two words", "<b>", "x" * 200, "naïve", "a\0b"])
def test_odd_user_names_are_refused(sessions: SessionService, ann: Actor, name: str) -> None:
    with pytest.raises(BadInput):
        sessions.set_password(ann, name, PASSWORD)


def test_a_code_of_the_second_factor_works_once(
    tenants: TenantService, sessions: SessionService, ann: Actor, clock: FixedClock
) -> None:
    bob = tenants.authenticate(invited(tenants, sessions, ann).secret)

    def code() -> str:
        return totp_code(TOTP, int(clock.now().timestamp()) // TOTP_SECONDS)

    with pytest.raises(NotAuthenticated):
        sessions.set_totp(bob, TOTP, "000000")
    sessions.set_totp(bob, TOTP, code())
    with pytest.raises(NotAuthenticated):
        sessions.sign_in("bob", PASSWORD, "", BROWSER)
    with pytest.raises(NotAuthenticated):
        sessions.sign_in("bob", PASSWORD, code(), BROWSER)
    clock.move(timedelta(seconds=TOTP_SECONDS * 2))
    now = code()
    results = at_once([lambda: sessions.sign_in("bob", PASSWORD, now, BROWSER)] * 3)
    assert sum(isinstance(each, MadeSession) for each in results) == 1
    sessions.set_totp(bob, "", "")
    sessions.sign_in("bob", PASSWORD, "", BROWSER)


def test_codes_match_rfc_6238() -> None:
    """The SHA-1 vectors of appendix B, cut to six digits."""
    expected = {59: "287082", 1111111109: "081804", 1234567890: "005924", 20000000000: "353130"}
    assert {second: totp_code(TOTP, second // 30) for second in expected} == expected


def test_sessions_of_another_organisation_do_not_exist(
    tenants: TenantService, sessions: SessionService, ann: Actor, owner_key: str
) -> None:
    eve = tenants.organisations.make(tenants.authenticate(tenants.operator_key().secret), "other", "eve")
    spy = tenants.authenticate(eve.key.secret)
    made = sessions.sign_in_with_key(owner_key, BROWSER)
    assert sessions.page(spy, limit=10) == ()
    with pytest.raises(NotFound):
        sessions.revoke(spy, made.session.id)
    assert [each.id for each in sessions.page(ann, limit=10)] == [made.session.id]


def test_no_secret_is_stored(
    database: Database, sessions: SessionService, ann: Actor, owner_key: str
) -> None:
    made = sessions.sign_in_with_key(owner_key, BROWSER)
    link = sessions.make_link(ann)
    with database.read() as tx:
        rows = str([*tx.all("SELECT * FROM console_session"), *tx.all("SELECT * FROM console_link")])
    for secret in (made.secret, link.secret, owner_key):
        assert secret.rpartition("_")[2] not in rows


def test_every_sign_in_has_an_audit_row(
    tenants: TenantService, sessions: SessionService, ann: Actor, owner_key: str
) -> None:
    sessions.sign_in_with_key(owner_key, BROWSER)
    invited(tenants, sessions, ann)
    actions = [row.action for row in tenants.audit(ann, limit=50)]
    assert actions.count("console.sign-in") == 2
    assert {"console.link", "console.password"} <= set(actions)


@pytest.mark.parametrize("secret", ["", "nonsense", "tera-link_" + "0" * 16 + "_" + "0" * 64, "tera_é"])
def test_texts_that_are_no_secrets_sign_nobody_in(
    tenants: TenantService, sessions: SessionService, ann: Actor, owner_key: str, secret: str
) -> None:
    for sign_in in (sessions.sign_in_with_key, sessions.sign_in_with_link):
        with pytest.raises(NotAuthenticated):
            sign_in(secret, BROWSER)
    with pytest.raises(NotAuthenticated):
        sessions.sign_in_with_link(owner_key, BROWSER)
    with pytest.raises(NotAuthenticated):
        sessions.sign_in_with_key(sessions.make_link(ann).secret, BROWSER)
    with pytest.raises(NotAuthenticated):
        tenants.authenticate(sessions.make_link(ann).secret)


def test_ended_sessions_and_links_are_forgotten(
    sessions: SessionService, ann: Actor, owner_key: str, clock: FixedClock
) -> None:
    sessions.sign_in_with_key(owner_key, BROWSER)
    sessions.make_link(ann)
    assert sessions.forget_old(clock.now()) == 0
    assert sessions.forget_old(clock.now() + SESSION_LIFE + timedelta(seconds=1)) == 2
