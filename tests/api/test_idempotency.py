"""A request that creates something is carried out once: if retried, sent concurrently, or interrupted."""

import sqlite3
import threading
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.api.asking import OTHER_SSH_KEY, ApiServer, Tenants

from teraflock.api import idempotency
from teraflock.api.asked import Asked
from teraflock.api.call import Raw
from teraflock.api.endpoint import Reply, reply_to
from teraflock.api.openapi import document
from teraflock.api.routes.all import ROUTES
from teraflock.base.clock import FixedClock
from teraflock.base.exchange import Rates
from teraflock.bill.service import BillService
from teraflock.reconcile.bills import BillLoop
from teraflock.reconcile.volumes import VolumeLoop

BODIES: dict[str, tuple[str, Any, Any]] = {
    "make_organisation": ("operator", {"name": "third", "owner": "me"}, {"name": "fourth", "owner": "me"}),
    "make_announcement": ("operator", {"text": "one"}, {"text": "two"}),
    "make_project": ("owner", {"name": "second"}, {"name": "third"}),
    "add_member": ("owner", {"name": "new", "role": "viewer"}, {"name": "new", "role": "member"}),
    "add_ssh_key": ("owner", {"public_key": OTHER_SSH_KEY}, {"public_key": OTHER_SSH_KEY, "name": "x"}),
    "make_key": ("owner", {"name": "ci"}, {"name": "ci", "days": 3}),
    "make_console_link": ("owner", {}, {"member": "viewer@acme"}),
    "make_image": ("owner", {"name": "again", "recipe": "base"}, {"name": "another", "recipe": "base"}),
    "launch_instances": ("owner", {"name": "new"}, {"name": "new", "image": "tools"}),
    "make_credit": ("operator", {"micros": 5, "reason": "a"}, {"micros": 6, "reason": "a"}),
    "make_payment": ("operator", {"micros": 5}, {"micros": 6}),
    "make_purchase": ("owner", {"instance": "new-one"}, {"instance": "web"}),
    "make_invoice": ("operator", {"month": "the present one"}, {"month": "2026-01"}),
    "make_snapshot": ("owner", {"name": "one"}, {"name": "two"}),
    "add_account": (
        "operator",
        {"name": "moon", "provider": "lambda", "secret": "sk-1"},
        {"name": "sun", "provider": "lambda", "secret": "sk-1"},
    ),
    "create_acl": ("owner", {"name": "outer"}, {"name": "inner"}),
    "create_network": ("owner", {"name": "outer"}, {"name": "inner"}),
    "create_subnet": ("owner", {"name": "outer", "prefix": 24}, {"name": "inner", "prefix": 24}),
    "create_security_group": ("owner", {"name": "front"}, {"name": "back"}),
    "create_address": ("owner", {}, {"address": "203.0.113.9"}),
    "create_balancer": (
        "owner",
        {"name": "front", "port": 80, "instances": ["web"]},
        {"name": "back", "port": 80, "instances": ["web"]},
    ),
    "publish_port": (
        "owner",
        {"instance": "web", "guest_port": 8080},
        {"instance": "web", "guest_port": 8081},
    ),
    "create_run": ("owner", {"command": ["true"]}, {"command": ["false"]}),
    "create_sweep": (
        "owner",
        {"run": {"command": ["true"]}, "grid": {"lr": ["1", "2"]}},
        {"run": {"command": ["true"]}, "grid": {"lr": ["1", "3"]}},
    ),
    "create_volume": (
        "owner",
        {"name": "more", "size_bytes": 1 << 30},
        {"name": "less", "size_bytes": 1 << 30},
    ),
    "snapshot_volume": ("owner", {"name": "one"}, {"name": "two"}),
    "invite_host": ("operator", {}, {"name": "lab3"}),
    "add_site": ("operator", {"name": "sky", "kind": "simulated"}, {"name": "sea", "kind": "simulated"}),
}
OPERATIONS = {
    operation["operationId"]: (path, operation)
    for path, methods in document()["paths"].items()
    for operation in methods.values()
}


def target(name: str, tenants: Tenants) -> str:
    path: str = OPERATIONS[name][0]
    query = f"?project={tenants.ids['project']}" if OPERATIONS[name][1]["x-scope"] == "project" else ""
    ids = tenants.ids
    return path.replace("{instance}", ids["instance"]).replace("{volume}", ids["volume"]) + query


MAKE_NOTHING = {
    "start_instance", "stop_instance", "restart_instance", "resize_instance", "restore_instance", "exec_in_instance",
    "show_quote", "preview_purchase", "verify_bills", "upgrade_purchase", "acknowledge_notice",
    "stop_any_instance", "start_any_instance", "estimate_workload", "make_plan", "check_site",
    "check_account", "sweep_account", "explain_placement", "recommend_gpus", "add_acl_rule", "allow_traffic",
    "add_backends", "remove_backends", "cancel_run", "retry_run",
    "create_dataset", "complete_dataset", "restore_volume", "recover_volume", "upgrade_host",
    "assemble_run_files",
}  # fmt: skip
"""POST requests that set a state, repeat without effect, or only read. All other POST requests create something."""


def test_every_create_accepts_an_idempotency_key() -> None:
    takes = {
        name
        for name, (_, operation) in OPERATIONS.items()
        if any(each["name"] == "Idempotency-Key" for each in operation.get("parameters", []))
    }
    posted = {
        operation["operationId"]
        for methods in document()["paths"].values()
        for method, operation in methods.items()
        if method == "post"
    }
    assert takes == posted - MAKE_NOTHING
    assert takes == set(BODIES)


@pytest.mark.parametrize("name", BODIES)
def test_retry_gets_the_same_response(server: ApiServer, tenants: Tenants, name: str) -> None:
    who, body, other = BODIES[name]
    key, path = {"idempotency-key": "k-1"}, target(name, tenants)
    if name == "make_purchase":
        assert server.ask("POST", "/v1/instances", tenants.keys[who], body={"name": "new-one"}).status == 202
        server.settle()
        BillLoop(server.cloud.services.nouns.bills, server.cloud.clock).turn()
    if name == "snapshot_volume":
        there = f"{path.split('/snapshots')[0]}/instance?project={tenants.ids['project']}"
        assert server.ask("PUT", there, tenants.keys[who], body={"instance": "web"}).status == 202
        VolumeLoop(server.cloud.loops.around).turn()
    if name == "make_invoice":
        body = {"month": month_that_is_over(server)}
    first = server.ask("POST", path, tenants.keys[who], body=body, headers=key)
    assert first.status in (201, 202), first
    rows = counts(server)
    again = server.ask("POST", path, tenants.keys[who], body=body, headers=key)
    assert (again.status, again.body) == (first.status, first.body)
    assert again.headers["idempotent-replay"] == "true"
    assert "idempotent-replay" not in first.headers
    reused = server.ask("POST", path, tenants.keys[who], body=other, headers=key)
    assert (reused.status, reused.code) == (422, "idempotency_key_reused")
    assert counts(server) == rows
    anew = server.ask("POST", path, tenants.keys[who], body=body, headers={"idempotency-key": "k-2"})
    assert anew.status in (201, 202, 409), "another key is another request"
    assert "idempotent-replay" not in anew.headers


def month_that_is_over(server: ApiServer) -> str:
    """This month, after charges were booked by a server whose clock is ahead."""
    ahead = FixedClock(server.cloud.clock.now() + timedelta(days=40))
    assert BillService(server.cloud.database, ahead, Rates([])).turn()
    return server.cloud.services.nouns.bills.month_now()


def test_white_space_and_field_order_do_not_matter(server: ApiServer, tenants: Tenants) -> None:
    owner, key = tenants.keys["owner"], {"idempotency-key": "k"}
    first = server.ask("POST", "/v1/instances", owner, raw=b'{"name":"new","image":"base"}', headers=key)
    again = server.ask("POST", "/v1/instances", owner, raw=b'{ "image": "base", "name": "new" }', headers=key)
    assert again.body == first.body


def test_failed_request_can_be_retried(server: ApiServer, tenants: Tenants) -> None:
    owner, key, body = tenants.keys["owner"], {"idempotency-key": "k"}, {"name": "web"}
    assert server.ask("POST", "/v1/instances", owner, body=body, headers=key).status == 409
    assert server.ask("DELETE", "/v1/instances/web", owner).status == 202
    server.settle()
    assert server.ask("POST", "/v1/instances", owner, body=body, headers=key).status == 202


def test_members_do_not_share_idempotency_keys(server: ApiServer, tenants: Tenants) -> None:
    key = {"idempotency-key": "k"}
    first = server.ask("POST", "/v1/instances", tenants.keys["owner"], body={"name": "one"}, headers=key)
    second = server.ask("POST", "/v1/instances", tenants.keys["member"], body={"name": "two"}, headers=key)
    assert (first.status, second.status) == (202, 202)


def test_stored_secret_is_shown_only_to_its_api_key(server: ApiServer, tenants: Tenants) -> None:
    owner, key, body = tenants.keys["owner"], {"idempotency-key": "k"}, {"name": "ci"}
    made = server.ask("POST", "/v1/keys", owner, body=body, headers=key).json
    dump = "\n".join(sqlite3.connect(server.cloud.at.folder / "cloud.db").iterdump())
    assert made["secret"] not in dump
    assert made["secret"].rpartition("_")[2] not in dump
    assert server.ask("POST", "/v1/keys", owner, body=body, headers=key).json == made
    capped = server.ask("POST", "/v1/keys", owner, body={"name": "second"}).json["secret"]
    other_key = server.ask("POST", "/v1/keys", capped, body=body, headers=key)
    assert (other_key.status, other_key.code) == (409, "conflict"), "the same member with another key"
    assert made["secret"].encode() not in other_key.body


def test_created_object_and_response_are_stored_together(
    server: ApiServer, tenants: Tenants, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner, key, body = tenants.keys["owner"], {"idempotency-key": "k"}, {"name": "new"}
    before = counts(server)

    def fault(*_: object) -> None:
        raise RuntimeError("the power is gone")

    monkeypatch.setattr(idempotency, "keep_answer", fault)
    assert server.ask("POST", "/v1/instances", owner, body=body, headers=key).status == 500
    assert counts(server) == before
    monkeypatch.undo()
    assert server.ask("POST", "/v1/instances", owner, body=body, headers=key).status == 202


def test_concurrent_retries_create_one_instance(server: ApiServer, tenants: Tenants) -> None:
    route = next(route for route in ROUTES if route.name == "launch_instances")
    raw = Raw(
        asked=Asked("r", "POST", "/v1/instances", ""),
        path={},
        query=b"",
        authorization=f"Bearer {tenants.keys['owner']}",
        content_type="application/json",
        idempotency_key="k",
        last_event_id="",
        body=b'{"name":"new"}',
    )
    replies: list[Reply] = []
    gate = threading.Barrier(6)

    def ask() -> None:
        gate.wait()
        replies.append(reply_to(route, server.cloud.services, raw))

    threads = [threading.Thread(target=ask) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {reply.status for reply in replies} == {202}
    assert len({reply.body for reply in replies}) == 1
    assert sum("Idempotent-Replay" in reply.headers for reply in replies) == 5


def test_old_responses_are_deleted(server: ApiServer, tenants: Tenants) -> None:
    server.ask("POST", "/v1/instances", tenants.keys["owner"], body={}, headers={"idempotency-key": "k"})
    assert idempotency.forget_old(server.cloud.database, server.cloud.clock) == 0
    database = server.cloud.at.folder / "cloud.db"
    _age(database)
    assert idempotency.forget_old(server.cloud.database, server.cloud.clock) == 1


def _age(database: Path) -> None:
    connection = sqlite3.connect(database)
    with connection:
        connection.execute("UPDATE idempotency SET created_at_us = 1")
    connection.close()


def counts(server: ApiServer) -> dict[str, int]:
    connection = sqlite3.connect(server.cloud.at.folder / "cloud.db")
    try:
        tables = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return {table: connection.execute(f"SELECT COUNT(*) FROM {table}").fetchone()[0] for table in tables}
    finally:
        connection.close()
