"""Every page and action × every role. The rules are repeated here by hand.

Pages come from the console's own list: one that is not in `RULES` fails, and so does a rule without one. Those who may
not act learn nothing and change nothing: the database is compared row by row.
"""

import pytest
from tests.api.asking import Tenants
from tests.api.test_permissions import EVERYONE, all_rows
from tests.console.pages import ADDRESSES, RULES, Rule, address
from tests.console.visiting import ConsoleServer, Visited

from teraflock.console.page import ConsolePage
from teraflock.console.pages.all import PAGES
from teraflock.tenant.admission import Scope

BY_NAME = {page.name: page for page in PAGES}
SIGNED_IN = [page for page in PAGES if page.scope != Scope.PUBLIC]


def test_every_page_has_a_rule_and_every_rule_a_page() -> None:
    assert sorted(RULES) == sorted(page.name for page in SIGNED_IN)
    assert len(BY_NAME) == len(PAGES), "two pages have the same name"
    assert set(ADDRESSES) <= set(BY_NAME)


def test_only_signing_in_and_choices_are_public() -> None:
    public = {page.name for page in PAGES if page.scope == Scope.PUBLIC}
    assert public == {
        "choose_language", "choose_theme", "show_sign_in", "sign_in", "show_link", "use_link", "begin_oidc",
        "finish_oidc", "choose_oidc", "show_sign_up", "sign_up", "check_certificate",
    }  # fmt: skip


@pytest.mark.parametrize("page", SIGNED_IN, ids=lambda page: page.name)
def test_those_who_may_not_act_learn_and_change_nothing(
    unchanged: ConsoleServer, tenants: Tenants, page: ConsolePage
) -> None:
    rule = RULES[page.name]
    sessions = {who: unchanged.session(tenants.keys[who]) for who in EVERYONE}
    before = all_rows(unchanged)
    for session in ("", "nonsense", "tera-session_0000000000000000_" + "0" * 64):
        nobody = visited(unchanged, tenants, page, rule, session)
        assert (nobody.status, nobody.body) == (303, b""), nobody
        assert nobody.header("location").startswith("/console/sign-in")
    for who in sorted(EVERYONE - rule.may):
        refused = visited(unchanged, tenants, page, rule, sessions[who])
        assert refused.status in (403, 404), (who, refused.status, refused.words)
        if who == "other" and page.scope == Scope.PROJECT:
            assert refused.status == 404, "a response reveals that the project exists"
        assert "acme" not in refused.text, who
    if page.method == "POST":
        for who in sorted(rule.may):
            forged = unchanged.post(address(page, tenants), sessions[who], rule.form, token=False)
            assert forged.status == 403, "an action without the token of its session"
            other = unchanged.post(address(page, tenants), sessions[who], {**rule.form, "csrf": "0" * 32})
            assert other.status == 403
            foreign = unchanged.post(
                address(page, tenants), sessions[who], rule.form, headers={"origin": "http://evil.test"}
            )
            assert foreign.status == 403, "an action from another site"
            framed = unchanged.post(
                address(page, tenants), sessions[who], rule.form, headers={"sec-fetch-site": "cross-site"}
            )
            assert framed.status == 403
    assert all_rows(unchanged) == before


ALLOWED = [
    (page, who) for page in SIGNED_IN if page.name != "follow_events" for who in sorted(RULES[page.name].may)
]


@pytest.mark.parametrize(("page", "who"), ALLOWED, ids=lambda each: getattr(each, "name", each))
def test_those_who_may_act_get_a_page(
    request: pytest.FixtureRequest, tenants: Tenants, page: ConsolePage, who: str
) -> None:
    rule = RULES[page.name]
    console: ConsoleServer = request.getfixturevalue("unchanged" if page.method == "GET" else "console")
    got = visited(console, tenants, page, rule, console.session(tenants.keys[who]))
    assert got.status in (200, 303, *rule.states), (got.status, got.words[-2000:])
    if got.status == 303 and page.name != "sign_out":
        assert not got.header("location").startswith("/console/sign-in")
    if page.method == "POST" and got.status == 303 and page.name != "sign_out":
        assert got.cookies["tera_flash"], "the reader is told what was done"


def visited(console: ConsoleServer, tenants: Tenants, page: ConsolePage, rule: Rule, session: str) -> Visited:
    target = address(page, tenants)
    if page.method == "GET":
        return console.get(target + rule.query, session)
    form = {name: value.format(**tenants.ids) for name, value in rule.form.items()}
    return console.post(target, session, form)
