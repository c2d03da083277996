"""What hosts cost us is the operator's alone: set, listed, refused in plain words, and seen by no tenant."""

from typing import Any

import pytest
from tests.api.asking import ApiServer, Tenants
from tests.api.test_permissions import EVERYONE, OPERATIONS, RULES, STREAM, asked

SECRET = 765_432_109  # micro-units an hour: a number that occurs nowhere else
SEEN = sorted(
    name
    for name, (method, _, _) in OPERATIONS.items()
    if method == "GET" and name not in (STREAM, "show_openapi")
)


def put(server: ApiServer, tenants: Tenants, host: str = "", **body: Any) -> Any:
    target = f"/v1/hosts/{host or tenants.ids['host']}/cost"
    return server.ask("PUT", target, tenants.keys["operator"], body=body)


def test_no_tenant_finds_a_cost_anywhere(server: ApiServer, tenants: Tenants) -> None:
    made = put(server, tenants, micros_per_hour=SECRET, currency="USD")
    assert (made.status, made.json["micros_per_hour"]) == (200, SECRET)
    for name in SEEN:
        for who in sorted(EVERYONE - {"operator"}):
            answer = asked(server, tenants, name, who)
            assert str(SECRET).encode() not in answer.body, (name, who)
            assert b"margin_micros" not in answer.body, (name, who)
    focus = asked(server, tenants, "export_focus", "owner").body.decode()
    assert "BilledCost" in focus.partition("\n")[0], "the columns of FOCUS are what the tenant pays"


def test_the_audit_log_names_the_act_and_not_the_amount(server: ApiServer, tenants: Tenants) -> None:
    put(server, tenants, micros_per_hour=SECRET, currency="USD")
    rows = server.ask("GET", "/v1/audit", tenants.keys["operator"]).json["items"]
    (row,) = [each for each in rows if each["action"] == "host.cost"]
    assert row["subject"] == tenants.ids["host"]
    assert str(SECRET) not in str(row)


def test_the_history_keeps_what_was_removed(server: ApiServer, tenants: Tenants) -> None:
    put(server, tenants, micros_per_hour=1_200_000, currency="USD")
    put(server, tenants, micros_per_hour=None)
    items = server.ask("GET", "/v1/host-costs", tenants.keys["operator"]).json["items"]
    assert [each["micros_per_hour"] for each in items] == [1_200_000, None]
    first = server.ask("GET", "/v1/host-costs?limit=1", tenants.keys["operator"]).json
    rest = server.ask("GET", f"/v1/host-costs?after={first['next']}", tenants.keys["operator"]).json
    assert [*first["items"], *rest["items"]] == items
    assert rest["next"] is None


@pytest.mark.parametrize(
    ("body", "status", "word"),
    [
        ({"micros_per_hour": -1, "currency": "USD"}, 400, ">= 0"),
        ({"micros_per_hour": 1, "currency": "usd"}, 400, "currency"),
        ({"micros_per_hour": 1, "currency": "XQX"}, 422, "XQX"),
        ({"micros_per_hour": 1}, 422, "currency"),
        ({"micros_per_hour": 1, "currency": "USD", "starts_at": "2026-11-01T00:00:00"}, 400, "starts_at"),
        (
            {"micros_per_hour": 1, "currency": "USD", "starts_at": "1999-01-01T00:00:00Z"},
            422,
            "cannot begin before",
        ),
    ],
)
def test_bad_costs_are_refused_in_one_sentence(
    server: ApiServer, tenants: Tenants, body: dict[str, Any], status: int, word: str
) -> None:
    answer = put(server, tenants, **body)
    assert answer.status == status, answer
    assert word in str(answer.json)
    assert server.ask("GET", "/v1/host-costs", tenants.keys["operator"]).json["items"] == []


def test_an_unknown_host_has_no_cost(server: ApiServer, tenants: Tenants) -> None:
    assert put(server, tenants, "nowhere", micros_per_hour=1, currency="USD").status == 404
    assert RULES["set_host_cost"].may == {"operator"}
