"""Sign-up: off by default; a new organisation pays in advance, with the credit of the settings, and nothing more."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.api.asking import SETTINGS, Tenants
from tests.api.test_permissions import all_rows
from tests.console.browser import BOOK
from tests.console.visiting import ConsoleServer, copied_console
from tests.contract.tenant.test_tenants import at_once

from teraflock.app.settings import Settings
from teraflock.app.sign_up import credit_of, quotas_of, sign_up_of
from teraflock.base.errors import BadInput, Conflict
from teraflock.base.names import check_name
from teraflock.tenant.session.model import Browser
from teraflock.tenant.sign_up.rules import organisation_name

OPEN = msgspec.structs.replace(SETTINGS, sign_up=True, sign_up_credit="10", sign_up_per_day=3)
FORM = {"user_name": "Ann@lab.example", "password": "four plain words"}


def opened(home: Path, folder: Path, settings: Settings, operator: str) -> ConsoleServer:
    console = copied_console(home, folder, settings)
    assert console.ask("PUT", "/v1/prices", operator, body={"text": BOOK}).status in (200, 204)
    return console


@pytest.fixture
def console(furnished: tuple[Path, Tenants], tmp_path: Path) -> Iterator[ConsoleServer]:
    home, tenants = furnished
    server = opened(home, tmp_path / "server", OPEN, tenants.keys["operator"])
    yield server
    server.close()


def launch(console: ConsoleServer, session: str, **shape: Any) -> Any:
    return console.ask("POST", "/v1/instances", session, body={"shape": shape})


def test_sign_up_is_off_by_default(unchanged: ConsoleServer) -> None:
    assert unchanged.get("/console/sign-up").status == 404
    assert unchanged.post("/console/sign-up", form=FORM).status == 404
    assert "sign-up" not in unchanged.get("/console/sign-in").text


def test_a_new_account_has_an_organisation_a_credit_and_a_small_quota(console: ConsoleServer) -> None:
    assert "You get a credit of 10.00 USD." in console.get("/console/sign-up").words
    done = console.post("/console/sign-up", form=FORM)
    session = done.cookies["tera_session"]
    who = console.ask("GET", "/v1/whoami", session).json
    assert (who["member_name"], who["roles"], who["is_operator"]) == ("ann@lab.example", {"": "owner"}, False)
    assert who["organisation_name"].startswith("ann-")
    credits = console.ask("GET", "/v1/credits", session).json["items"]
    assert [(each["micros"], each["currency"]) for each in credits] == [(10_000_000, "USD")]
    assert launch(console, session, vcpus=1).status == 202
    assert launch(console, session, vcpus=33).code == "quota_reached"
    again = console.post("/console/sign-in", form=FORM)
    assert again.status == 303, "the password signs in"
    assert console.ask("GET", "/v1/keys", session).json["items"] == [], "no key that nobody has"
    assert console.cloud.services.nouns.bills.verify().is_sound


def test_a_new_account_cannot_spend_more_than_its_credit(
    furnished: tuple[Path, Tenants], tmp_path: Path
) -> None:
    settings = msgspec.structs.replace(OPEN, sign_up_credit="0")
    console = opened(furnished[0], tmp_path / "poor", settings, furnished[1].keys["operator"])
    try:
        session = console.post("/console/sign-up", form=FORM).cookies["tera_session"]
        assert launch(console, session, vcpus=1).code == "budget_reached"
        assert console.ask("POST", "/v1/projects", session, body={"name": "more"}).code == "quota_reached"
        removed = console.ask("DELETE", "/v1/projects/default", session)
        assert removed.code == "refused", "a new project would not pay in advance"
    finally:
        console.close()


@pytest.mark.parametrize(
    ("form", "status", "words"),
    [
        ({"user_name": "ann", "password": "short"}, 422, "too short"),
        ({"user_name": "ann marie", "password": "four plain words"}, 422, "not valid"),
        ({"user_name": "mem_ann", "password": "four plain words"}, 422, "not a valid name"),
        ({"user_name": "annabella", "password": "annabella1234"}, 422, "too easy"),
        ({"user_name": "<b>x", "password": "four plain words"}, 422, "not valid"),
        ({}, 422, "not valid"),
    ],
)
def test_names_and_passwords_follow_the_rules_of_invitations(
    console: ConsoleServer, form: dict[str, str], status: int, words: str
) -> None:
    refused = console.post("/console/sign-up", form=form)
    assert (refused.status, "tera_session" in refused.cookies) == (status, False)
    assert words in refused.words
    assert "<b>" not in refused.text


def test_one_user_name_signs_up_once_even_at_once(console: ConsoleServer) -> None:
    service = sign_up_of(console.cloud)
    assert service is not None
    done = at_once([lambda: service.sign_up("twice", "four plain words", Browser("192.0.2.1", "x"))] * 4)
    assert sorted(type(each) is Conflict for each in done) == [False, True, True, True]
    taken = console.post("/console/sign-up", form={**FORM, "user_name": "twice"})
    assert (taken.status, "This user name is taken" in taken.words) == (409, True)


def test_only_so_many_sign_up_in_a_day(console: ConsoleServer) -> None:
    for number in range(3):
        assert console.post("/console/sign-up", form={**FORM, "user_name": f"user{number}"}).status == 303
    full = console.post("/console/sign-up", form={**FORM, "user_name": "last"})
    assert (full.status, "Too many people signed up today" in full.words) == (429, True)


def test_one_address_signs_up_five_times_in_an_hour(furnished: tuple[Path, Tenants], tmp_path: Path) -> None:
    settings = msgspec.structs.replace(OPEN, rate_per_second=200, sign_up_per_day=100)
    console = opened(furnished[0], tmp_path / "limited", settings, furnished[1].keys["operator"])
    try:
        assert console.post("/console/sign-up", form={"user_name": "x", "password": "y"}).status == 422
        made = [
            console.post("/console/sign-up", form={**FORM, "user_name": f"u{n}"}).status for n in range(6)
        ]
        assert made == [303] * 5 + [429]
        refused = console.post("/console/sign-up", form={**FORM, "user_name": "again"})
        assert "the limit is 5 an hour" in refused.words
    finally:
        console.close()


def test_nobody_lists_user_names(furnished: tuple[Path, Tenants], tmp_path: Path) -> None:
    """Who chooses a name learns that it is taken, but only a few times; a free name does not count."""
    settings = msgspec.structs.replace(OPEN, rate_per_second=200, sign_up_per_day=100)
    console = opened(furnished[0], tmp_path / "listed", settings, furnished[1].keys["operator"])
    try:
        console.post("/console/sign-up", form={**FORM, "user_name": "taken"})
        session = console.post("/console/sign-up", form={**FORM, "user_name": "prober"}).cookies[
            "tera_session"
        ]
        change = {"current": FORM["password"], "password": "other plain words", "again": "other plain words"}
        told = []
        for _ in range(6):
            page = console.post("/console/account/password", session, {**change, "user_name": "taken"})
            told.append((page.status, "This user name is taken" in page.words))
        assert told == [(409, True)] * 5 + [(429, False)]
        again = console.post("/console/sign-up", form={**FORM, "user_name": "taken"})
        assert (again.status, "to choose a user name" in again.words) == (429, True), "by any way"
    finally:
        console.close()


def test_nobody_signs_up_without_prices_and_nothing_is_left(tmp_path: Path) -> None:
    console = ConsoleServer(tmp_path / "home", OPEN)
    try:
        assert "credit" not in console.get("/console/sign-up").words
        before = all_rows(console)
        refused = console.post("/console/sign-up", form=FORM)
        assert (refused.status, "no prices yet" in refused.words) == (503, True)
        assert all_rows(console) == before
    finally:
        console.close()


def test_settings_that_cannot_work_are_refused() -> None:
    for amount in ("-1", "ten", "1,5", "1e99"):
        with pytest.raises(BadInput, match="sign_up_credit"):
            credit_of(msgspec.structs.replace(OPEN, sign_up_credit=amount))
    for quota in ("gpus=1", "projects=2", "nonsense"):
        with pytest.raises(BadInput, match="sign_up_quota"):
            quotas_of(msgspec.structs.replace(OPEN, sign_up_quota=quota))


def test_organisations_get_names_that_are_valid() -> None:
    for user in ("ann@lab.example", "7", "-", "a" * 128, "x.y_z+1@q", "9lives"):
        check_name(organisation_name(user, b"abcd"), "an organisation")
