"""Explained placements, labels and drains of hosts, and the queue over the API."""

import pytest
from tests.api.asking import Answer, ApiServer, Tenants

from teraflock.reconcile.queue import QueueLoop

TWO = {"shape": {"gpu": "V100", "gpus": 2}}


def ask(server: ApiServer, tenants: Tenants, who: str, line: str, body: object = None) -> Answer:
    method, target = line.split(" ", 1)
    return server.ask(method, target, tenants.keys[who], body=body)


def hosts(server: ApiServer, tenants: Tenants) -> list[str]:
    return [each["name"] for each in ask(server, tenants, "operator", "GET /v1/hosts").json["items"]]


def test_tenant_sees_reasons_without_amounts_and_operator_sees_both(
    server: ApiServer, tenants: Tenants
) -> None:
    found = ask(server, tenants, "owner", "POST /v1/placements", TWO).json
    (rejected,) = found["rejected"]
    assert (found["fits"], rejected["reason"], rejected["details"]) == (True, "not enough free V100-SXM2", "")
    assert found["reasons"] == {"not enough free V100-SXM2": 1}
    before = ask(server, tenants, "owner", "GET /v1/instances").json
    assert [each["name"] for each in before["items"]] == ["web"], "nothing was launched"


def test_labels_restrict_launches(server: ApiServer, tenants: Tenants) -> None:
    first, second = hosts(server, tenants)
    change = {"labels": {"zone": "a", "disk": "ssd"}}
    labelled = ask(server, tenants, "operator", f"PATCH /v1/hosts/{first}", change).json
    assert labelled["labels"] == {"disk": "ssd", "zone": "a"}
    removed = ask(server, tenants, "operator", f"PATCH /v1/hosts/{first}", {"labels": {"disk": None}}).json
    assert removed["labels"] == {"zone": "a"}
    on = {"name": "here", "shape": {"vcpus": 1}, "on": {"zone": "a"}}
    made = ask(server, tenants, "owner", "POST /v1/instances", on).json["items"][0]
    assert made["host"] == first
    off = {"name": "there", "shape": {"vcpus": 1}, "not_with": ["here"]}
    assert ask(server, tenants, "owner", "POST /v1/instances", off).json["items"][0]["host"] == second
    nowhere = ask(server, tenants, "owner", "POST /v1/instances", {"on": {"zone": "b"}})
    assert (nowhere.status, nowhere.code) == (422, "bad_input")
    assert "not labelled `zone=b`" in nowhere.json["hint"]


def test_names_of_other_tenants_instances_are_unknown(server: ApiServer, tenants: Tenants) -> None:
    for target in ("placements", "instances"):
        answer = ask(server, tenants, "other", f"POST /v1/{target}", {"not_with": [tenants.ids["instance"]]})
        assert answer.code == "bad_input"
        assert "There is no instance" in answer.body.decode()


@pytest.mark.parametrize(
    "change",
    [
        {"labels": {"region": "far"}},
        {"labels": {"zone": "two words"}},
        {"labels": {"": "a"}},
        {"drain_at": "2027-01-01T00:00:00Z"},
        {"state": "ready", "drain_at": "2027-01-01T00:00:00Z"},
        {"state": "draining", "drain_at": "9999-01-01T00:00:00Z"},
    ],
)
def test_bad_changes_of_hosts_are_refused(
    server: ApiServer, tenants: Tenants, change: dict[str, object]
) -> None:
    host = hosts(server, tenants)[0]
    before = ask(server, tenants, "operator", f"GET /v1/hosts/{host}").json
    answer = ask(server, tenants, "operator", f"PATCH /v1/hosts/{host}", change)
    assert answer.status in (400, 422), answer
    after = ask(server, tenants, "operator", f"GET /v1/hosts/{host}").json
    assert after["labels"] == before["labels"] == {}
    assert after["drain_at"] is None


def test_queued_launch_is_listed_starts_and_can_be_cancelled(server: ApiServer, tenants: Tenants) -> None:
    waiting = ask(server, tenants, "owner", "GET /v1/queue").json["items"]
    assert [(each["name"], each["state"], each["place"], each["expected_at"]) for each in waiting] == [
        ("later", "waiting", 1, None)
    ]
    assert ask(server, tenants, "other", "GET /v1/queue").json["items"] == []
    assert ask(server, tenants, "other", f"DELETE /v1/queue/{tenants.ids['queued']}").status == 404
    again = {"name": "again", **TWO, "instances": 2, "queue": True, "priority": 3}
    second = ask(server, tenants, "owner", "POST /v1/instances", again).json["queued"]
    cancelled = ask(server, tenants, "owner", f"DELETE /v1/queue/{second['id']}").json
    assert cancelled["state"] == "cancelled"
    ask(server, tenants, "owner", "DELETE /v1/instances/web")
    server.settle()
    QueueLoop(server.cloud.loops.around, server.cloud.services.nouns.instances.queue).turn()
    started = ask(server, tenants, "owner", f"GET /v1/queue/{tenants.ids['queued']}").json
    assert (started["state"], len(started["instance_ids"])) == ("launched", 2)
    late = ask(server, tenants, "owner", f"DELETE /v1/queue/{tenants.ids['queued']}")
    assert late.code == "conflict"
    ended = ask(server, tenants, "owner", "GET /v1/queue?ended=true").json["items"]
    assert [each["state"] for each in ended] == ["launched", "cancelled"]
