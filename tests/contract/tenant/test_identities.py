"""Identities, sign-ups, SSH keys and certificates on both databases."""

import base64
from collections.abc import Callable
from datetime import timedelta
from random import Random

import pytest
from tests.api.asking import OTHER_SSH_KEY, SSH_KEY
from tests.contract.tenant.test_sessions import BROWSER, NOW, PlainPasswords
from tests.contract.tenant.test_tenants import at_once
from tests.unit.tenant.ticking import TickingClock

from teraflock.base.clock import FixedClock
from teraflock.base.errors import Conflict, NotAuthenticated, NotFound, Refused, TooMany
from teraflock.storage.database import Database, Transaction
from teraflock.tenant.identity.model import Attempt, ConfirmedIdentity, Joining, Returned
from teraflock.tenant.identity.service import IdentityService
from teraflock.tenant.lesson.service import LessonService
from teraflock.tenant.model import Actor, Defaults, OrganisationQuota, ProjectId, Role
from teraflock.tenant.service import TenantService
from teraflock.tenant.session.service import SessionService
from teraflock.tenant.sign_up.model import SignUpTerms
from teraflock.tenant.sign_up.service import SignUpService


class Provider:
    """Confirms whoever the code names."""

    name = "Lab"

    def address(self, attempt: Attempt) -> str:
        return f"https://login.example/?state={attempt.state}"

    def identity(self, code: str, attempt: Attempt) -> ConfirmedIdentity:
        return ConfirmedIdentity(issuer="https://login.example", subject=f"of {code}", email=code)

    def check_issuer(self, issuer: str) -> None:
        return


class Base64Sealing:
    def seal(self, text: str, *, bound_to: str) -> str:
        return base64.b64encode(f"{bound_to}|{text}".encode()).decode()

    def open(self, sealed: str, *, bound_to: str) -> str:
        kind, _, text = base64.b64decode(sealed).decode().partition("|")
        if kind != bound_to:
            raise Refused("of another kind")
        return text


class NoGift:
    def text(self, tx: Transaction) -> str:
        return ""

    def give(self, tx: Transaction, project: ProjectId) -> None:
        return


@pytest.fixture
def clock() -> FixedClock:
    return TickingClock(NOW)


@pytest.fixture
def tenants(database: Database, clock: FixedClock) -> TenantService:
    return TenantService(database, clock, Random(7).randbytes)


@pytest.fixture
def ann(tenants: TenantService) -> Actor:
    secret = tenants.install().secret
    assert secret is not None
    made = tenants.organisations.make(tenants.authenticate(secret), "acme", "ann@acme")
    return tenants.authenticate(made.key.secret)


@pytest.fixture
def sessions(database: Database, clock: FixedClock) -> SessionService:
    return SessionService(database, clock, Random(8).randbytes, PlainPasswords())


@pytest.fixture
def identities(
    database: Database, clock: FixedClock, sessions: SessionService, ann: Actor
) -> IdentityService:
    joining = Joining(organisation="acme", domains=frozenset({"lab.example"}), role=Role.VIEWER)
    return IdentityService(
        database, clock, Random(9).randbytes, sessions, Provider(), Base64Sealing(), joining
    )


def returned(identities: IdentityService, email: str) -> tuple[str, Returned]:
    address, kept = identities.begin("/console/team")
    return kept, Returned(state=address.rpartition("=")[2], code=email)


def test_a_person_joins_once_however_many_browsers_try(
    identities: IdentityService, tenants: TenantService, ann: Actor
) -> None:
    sealed = [identities.arrive(*returned(identities, "bob@lab.example"), BROWSER).sealed for _ in range(4)]

    def chooses(kept: str) -> Callable[[], object]:
        return lambda: identities.choose(kept, "", BROWSER)

    done = at_once([chooses(kept) for kept in sealed])
    assert sum(not isinstance(each, Exception) for each in done) == 1
    names = [each.name for each in tenants.members.page(ann, limit=10)]
    assert names.count("bob@lab.example") == 1
    arrival = identities.arrive(*returned(identities, "bob@lab.example"), BROWSER)
    assert arrival.session is not None
    assert tenants.authenticate(arrival.session.secret).member_name == "bob@lab.example"


def test_an_attempt_works_once_and_ends(identities: IdentityService, clock: FixedClock) -> None:
    kept, back = returned(identities, "bob@lab.example")
    done = at_once([lambda: identities.arrive(kept, back, BROWSER)] * 3)
    assert sum(isinstance(each, NotAuthenticated) for each in done) == 2
    late, back = returned(identities, "bob@lab.example")
    clock.move(timedelta(minutes=11))
    with pytest.raises(NotAuthenticated, match="took too long"):
        identities.arrive(late, back, BROWSER)


def test_members_of_several_organisations_choose(
    identities: IdentityService, tenants: TenantService, ann: Actor
) -> None:
    operator = tenants.authenticate(tenants.operator_key().secret)
    other = tenants.organisations.make(operator, "other", "Bob@Lab.example")
    tenants.members.make(ann, "bob@lab.example", Role.MEMBER)
    arrival = identities.arrive(*returned(identities, "bob@lab.example"), BROWSER)
    assert [each.organisation_name for each in arrival.choices] == ["other", "acme"] or [
        each.organisation_name for each in arrival.choices
    ] == ["acme", "other"]
    session, next = identities.choose(arrival.sealed, other.owner.id, BROWSER)
    actor = tenants.authenticate(session.secret)
    assert (actor.organisation_id, next) == (other.organisation.id, "/console/team")
    again = identities.arrive(*returned(identities, "bob@lab.example"), BROWSER)
    assert [each.is_connected for each in again.choices] == [True, False], "connected ones come first"
    identities.disconnect(actor)
    assert identities.identities_of(actor) == ()


def test_sign_ups_are_counted_and_user_names_are_unique(
    database: Database, clock: FixedClock, tenants: TenantService, sessions: SessionService, ann: Actor
) -> None:
    terms = SignUpTerms(quotas=Defaults(organisation=OrganisationQuota(projects=1)), per_day_max=2)
    service = SignUpService(
        database, clock, Random(10).randbytes, sessions, tenants.organisations, NoGift(), terms
    )
    done = at_once([lambda: service.sign_up("carl", "four plain words", BROWSER)] * 3)
    assert sum(isinstance(each, Conflict) for each in done) == 2
    carl = tenants.authenticate(service.sign_up("dora", "four plain words", BROWSER).secret)
    with pytest.raises(TooMany):
        service.sign_up("emil", "four plain words", BROWSER)
    with pytest.raises(Refused, match="only project"):
        tenants.projects.remove(carl, "default")
    clock.move(timedelta(days=1, minutes=1))
    service.sign_up("emil", "four plain words", BROWSER)


def test_ssh_keys_and_certificates_are_kept(
    database: Database, clock: FixedClock, tenants: TenantService, ann: Actor
) -> None:
    made = tenants.ssh_keys.add(ann, SSH_KEY)
    with pytest.raises(Conflict):
        tenants.ssh_keys.add(ann, SSH_KEY)
    tenants.ssh_keys.add(ann, OTHER_SSH_KEY, "second")
    assert [each.name for each in tenants.ssh_keys.page(ann, limit=5)] == ["acme@laptop", "second"]
    tenants.ssh_keys.remove(ann, made.id)
    with pytest.raises(NotFound):
        tenants.ssh_keys.remove(ann, made.id)
    lessons = LessonService(database, clock, Random(11).randbytes)
    at_once([lambda: lessons.passes(ann, "one", {"one"})] * 3)
    found = lessons.certificate_of(ann)
    assert found is not None
    assert lessons.certificate(found.id) == found
