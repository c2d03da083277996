"""Money actions are in the audit log with names and amounts. Purchases need a permission or a limit. Caps hold."""

from typing import Any

import pytest
from tests.api.asking import BOOK, ApiServer, Tenants
from tests.api.test_idempotency import month_that_is_over
from tests.api.test_permissions import OPERATIONS, RULES

MONEY = {"prices", "quotes", "bills", "budgets", "credits", "billing", "purchases", "invoices"}
"""The tags of routes about money."""
READS_BY_POST = {"show_quote", "verify_bills", "preview_purchase"}
"""They change nothing."""
MONEY = {"bills", "billing", "budgets", "credits", "invoices", "prices", "purchases", "quotes"}
WRITES = sorted(
    name
    for name, (method, _, operation) in OPERATIONS.items()
    if MONEY & {*operation["tags"]} and method != "GET" and name not in READS_BY_POST
)
ACTIONS = {
    "set_prices": ("operator", "price.set"),
    "set_budget": ("owner", "budget.set"),
    "remove_budget": ("owner", "budget.remove"),
    "set_budget_cap": ("operator", "budget.cap"),
    "remove_budget_cap": ("operator", "budget.uncap"),
    "make_credit": ("operator", "credit.give"),
    "set_billing": ("operator", "billing.set"),
    "make_payment": ("operator", "payment.take"),
    "make_purchase": ("owner", "purchase.buy"),
    "change_renewal": ("owner", "purchase.renewal"),
    "upgrade_purchase": ("owner", "purchase.upgrade"),
    "end_purchase": ("owner", "purchase.end"),
    "set_purchase_limit": ("owner", "purchase.limit"),
    "remove_purchase_limit": ("owner", "purchase.limit"),
    "make_invoice": ("operator", "invoice.issue"),
}


def asked(server: ApiServer, tenants: Tenants, name: str, who: str, **more: Any) -> Any:
    method, path, _ = OPERATIONS[name]
    rule, ids = RULES[name], tenants.ids
    words = {word: text.format(**ids) for word, text in rule.path.items()}
    target = path.format(**words) + ("?" + rule.query.format(**ids) if rule.query else "")
    return server.ask(method, target, tenants.keys[who], body=more.get("body", rule.body))


def rows(server: ApiServer, tenants: Tenants, organisation: str = "") -> list[Any]:
    where = f"?organisation={organisation}" if organisation else ""
    found: list[Any] = server.ask("GET", f"/v1/audit{where}", tenants.keys["operator"]).json["items"]
    return found


def test_every_route_that_changes_money_is_listed() -> None:
    assert sorted(ACTIONS) == WRITES


@pytest.mark.parametrize("name", WRITES)
def test_every_money_action_is_in_the_audit_log(server: ApiServer, tenants: Tenants, name: str) -> None:
    who, action = ACTIONS[name]
    body = RULES[name].body
    if name == "make_invoice":
        body = {"month": month_that_is_over(server)}
    if name == "make_purchase":
        asked(server, tenants, "end_purchase", "owner")
    answer = asked(server, tenants, name, who, body=body)
    assert answer.status < 300, answer
    organisation = "" if name == "set_prices" else tenants.ids["organisation"]
    (row, *_) = [each for each in rows(server, tenants, organisation) if each["action"] == action]
    assert row["member"] == ("operator" if who == "operator" else "owner@acme")
    if name != "set_prices":
        assert row["details"]["project"] == "default"
    if "purchase" in name and "limit" not in name:
        assert row["details"]["name"] == "web"
    if name not in ("change_renewal", "remove_budget", "remove_budget_cap", "set_prices", "set_billing"):
        assert row["details"]["amount"]


def test_audit_log_has_commands_without_arguments(server: ApiServer, tenants: Tenants) -> None:
    server.settle()
    body = {"command": ["echo", "my-secret"]}
    answer = asked(server, tenants, "exec_in_instance", "member", body=body)
    assert answer.status == 200, answer
    found = rows(server, tenants, tenants.ids["organisation"])
    (row,) = [each for each in found if each["action"] == "instance.exec"]
    assert (row["member"], row["details"]["name"], row["details"]["program"]) == (
        "member@acme",
        "web",
        "echo",
    )
    assert "my-secret" not in str(row)


def test_member_can_buy_only_within_a_limit(server: ApiServer, tenants: Tenants) -> None:
    asked(server, tenants, "end_purchase", "owner")
    price = asked(server, tenants, "preview_purchase", "member").json
    assert price["fee_micros"] > 0
    refused = asked(server, tenants, "make_purchase", "member")
    assert (refused.status, refused.code) == (403, "forbidden")
    assert "tera buy limit" in refused.json["hint"]
    less = {"micros": price["fee_micros"] - 1}
    assert asked(server, tenants, "set_purchase_limit", "owner", body=less).status == 204
    assert asked(server, tenants, "make_purchase", "member").code == "budget_reached"
    enough = {"micros": price["fee_micros"]}
    assert asked(server, tenants, "set_purchase_limit", "operator", body=enough).status == 204
    bought = asked(server, tenants, "make_purchase", "member")
    assert (bought.status, bought.json["instance"]) == (201, "web")
    ends = asked(server, tenants, "end_purchase", "member")
    assert (ends.status, ends.code) == (403, "forbidden"), (
        "a limit allows to buy, not to end what owners bought"
    )
    (limit,) = asked(server, tenants, "list_purchase_limits", "owner").json["items"]
    assert (limit["member"], limit["spent_micros"]) == ("member@acme", price["fee_micros"])


def test_reservation_counts_all_instalments_against_the_limit(server: ApiServer, tenants: Tenants) -> None:
    asked(server, tenants, "end_purchase", "owner")
    book = BOOK.replace("vcpu:", "reserved: {1 year: 25%}, vcpu:")
    assert asked(server, tenants, "set_prices", "operator", body={"text": book}).status == 200
    body = {"instance": "web", "years": 1}
    price = asked(server, tenants, "preview_purchase", "owner", body=body).json
    assert price["committed_micros"] == 12 * price["fee_micros"]
    limit = {"micros": 11 * price["fee_micros"]}
    asked(server, tenants, "set_purchase_limit", "owner", body=limit)
    assert asked(server, tenants, "make_purchase", "member", body=body).code == "budget_reached"


def test_purchase_cannot_exceed_a_soft_budget(server: ApiServer, tenants: Tenants) -> None:
    asked(server, tenants, "end_purchase", "owner")
    asked(server, tenants, "set_budget", "owner", body={"micros": 1_000_000, "hard_stop": False})
    refused = asked(server, tenants, "make_purchase", "owner")
    assert refused.code == "budget_reached"


def test_tenant_cannot_remove_the_operators_cap(server: ApiServer, tenants: Tenants) -> None:
    capped = asked(server, tenants, "set_budget_cap", "operator", body={"micros": 3_000_000}).json
    assert (capped["micros"], capped["hard_stop"]) == (3_000_000, True)
    own = asked(server, tenants, "set_budget", "owner", body={"micros": 1_000_000_000}).json
    assert (own["micros"], own["own_micros"], own["cap_micros"], own["hard_stop"]) == (
        3_000_000,
        1_000_000_000,
        3_000_000,
        True,
    )
    assert asked(server, tenants, "remove_budget_cap", "owner").status == 403
    assert asked(server, tenants, "remove_budget", "owner").status == 204
    assert asked(server, tenants, "show_budget", "owner").json["cap_micros"] == 3_000_000
    lower = asked(server, tenants, "set_budget", "owner", body={"micros": 2_000_000}).json
    assert (lower["micros"], lower["hard_stop"]) == (2_000_000, False)
    body = {"name": "more", "shape": {"gpu": "V100"}, "instances": 1}
    asked(server, tenants, "set_budget_cap", "operator", body={"micros": 0})
    refused = asked(server, tenants, "launch_instances", "owner", body=body)
    assert refused.code == "budget_reached"
    assert "operator" in refused.json["hint"]


def test_prepaid_profile_shows_uncharged_usage(server: ApiServer, tenants: Tenants) -> None:
    query, operator = f"?project={tenants.ids['project']}", tenants.keys["operator"]
    server.ask("PUT", f"/v1/prices{query}", operator, body={"text": BOOK})
    profile = server.ask(
        "PUT", f"/v1/billing{query}", operator, body={"currency": "USD", "pays": "prepaid"}
    ).json
    assert profile["pending_micros"] > 0
    expected = profile["balance_micros"] - profile["owed_micros"] - profile["pending_micros"]
    credits = server.ask("GET", f"/v1/credits{query}", operator).json["items"]
    assert profile["available_micros"] <= expected + sum(each["left_micros"] for each in credits)
