"""Every operation of the API × every kind of key. The rules are repeated here by hand.

The operations come from the OpenAPI document: one that is not in `RULES` fails, and so does a rule without one.
Unauthorised clients learn nothing and change nothing: the database is compared row by row.
"""

import sqlite3
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.api.asking import BOOK, OTHER_SSH_KEY, Answer, ApiServer, Tenants, copied

from teraflock.api.openapi import document

BAD_KEYS = ("malformed", "unknown", "revoked", "expired")
EVERYONE = frozenset({"owner", "member", "viewer", "billing", "elsewhere", "capped", "other", "operator"})
OWNER = frozenset({"owner", "operator"})
SEES = frozenset({"owner", "member", "viewer", "capped", "operator"})
COUNTS = SEES | {"billing"}
PAYS = frozenset({"owner", "billing", "operator"})
WORKS = frozenset({"owner", "member"})
BUYS = frozenset({"owner"})
OPERATOR = frozenset({"operator"})


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    may: frozenset[str]
    """Who may act on acme's project. For lists without a project: who gets a list of their own."""
    path: dict[str, str] = {}
    query: str = ""
    body: Any = None
    own: frozenset[str] = frozenset()
    """Who gets a response without anything of acme's project."""
    states: frozenset[int] = frozenset()
    """Statuses besides 2xx that only authorised clients get, for example for a month that does not exist."""


IN = "project={project}"
LAUNCH = {"name": "new", "shape": {"vcpus": 1}}

RULES: dict[str, Rule] = {
    "show_health": Rule(may=EVERYONE),
    "show_openapi": Rule(may=EVERYONE),
    "show_metrics": Rule(may=OPERATOR),
    "show_whoami": Rule(may=EVERYONE),
    "show_offer_history": Rule(may=EVERYONE, query="gpu=V100"),
    "list_organisations": Rule(may=OPERATOR),
    "make_organisation": Rule(may=OPERATOR, body={"name": "third", "owner": "me@third"}),
    "show_organisation": Rule(may=OPERATOR, path={"organisation": "{organisation}"}),
    "set_organisation_state": Rule(
        may=OPERATOR, path={"organisation": "{organisation}"}, body={"state": "suspended", "reason": "unpaid"}
    ),
    "rename_organisation": Rule(
        may=OPERATOR, path={"organisation": "{organisation}"}, body={"name": "renamed", "reason": "asked for"}
    ),
    "delete_organisation": Rule(
        may=OPERATOR, path={"organisation": "{organisation}"}, query="reason=over&force=true"
    ),
    "list_all_instances": Rule(may=OPERATOR),
    "show_any_instance": Rule(may=OPERATOR, path={"instance": "{instance}"}),
    "stop_any_instance": Rule(may=OPERATOR, path={"instance": "{instance}"}, body={"reason": "abuse"}),
    "start_any_instance": Rule(may=OPERATOR, path={"instance": "{instance}"}, body={"reason": "mended"}),
    "delete_any_instance": Rule(may=OPERATOR, path={"instance": "{instance}"}, query="reason=abuse"),
    "show_any_log": Rule(may=OPERATOR, path={"instance": "{instance}"}, query="reason=support"),
    "list_server_events": Rule(may=OPERATOR),
    "list_whole_queue": Rule(may=OPERATOR),
    "list_announcements": Rule(may=EVERYONE),
    "make_announcement": Rule(may=OPERATOR, body={"text": "Maintenance on Sunday"}),
    "remove_announcement": Rule(may=OPERATOR, path={"announcement": "{announcement}"}),
    "list_projects": Rule(may=EVERYONE, own=frozenset({"other", "elsewhere", "operator"})),
    "make_project": Rule(may=OWNER, own=frozenset({"other"}), body={"name": "second"}),
    "show_project": Rule(may=SEES | {"billing"}),
    "delete_project": Rule(may=OWNER, path={"project": "{empty}"}),
    "set_quota": Rule(may=OWNER, body={"instances": 3}),
    "show_organisation_usage": Rule(may=COUNTS, path={"organisation": "{organisation}"}),
    "set_organisation_quota": Rule(
        may=OPERATOR, path={"organisation": "{organisation}"}, body={"projects": 3}
    ),
    "show_usage": Rule(may=SEES | {"billing"}),
    "list_members": Rule(may=EVERYONE - {"billing"}, own=frozenset({"other", "elsewhere", "operator"})),
    "add_member": Rule(may=OWNER, own=frozenset({"other"}), body={"name": "new@acme", "role": "viewer"}),
    "remove_member": Rule(may=OWNER, path={"member": "{viewer}"}),
    "set_role": Rule(may=OWNER, path={"member": "{viewer}"}, body={"role": "member"}),
    "list_keys": Rule(may=EVERYONE, own=EVERYONE - {"owner"}),
    "make_key": Rule(
        may=frozenset({"owner", "member", "elsewhere", "operator"}),
        own=frozenset({"other"}),
        body={"name": "mine"},
    ),
    "list_ssh_keys": Rule(may=OWNER, own=EVERYONE - OWNER),
    "add_ssh_key": Rule(
        may=frozenset({"owner", "member", "elsewhere", "other", "operator"}),
        body={"public_key": OTHER_SSH_KEY},
    ),
    "remove_ssh_key": Rule(may=frozenset({"owner"}), path={"ssh_key": "{ssh_key}"}),
    "revoke_key": Rule(may=OWNER, path={"key": "{spare}"}),
    "make_console_link": Rule(may=EVERYONE, own=EVERYONE - {"owner"}, body={}),
    "list_console_sessions": Rule(may=EVERYONE, own=EVERYONE - {"owner"}),
    "revoke_console_session": Rule(may=frozenset({"owner"}), path={"session": "{session}"}),
    "list_audit": Rule(may=EVERYONE - {"billing"}, own=frozenset({"other", "elsewhere", "operator"})),
    "list_shapes": Rule(may=EVERYONE - {"billing"}),
    "list_hosts": Rule(may=OPERATOR),
    "show_host": Rule(may=OPERATOR, path={"host": "{host}"}),
    "change_host": Rule(may=OPERATOR, path={"host": "{host}"}, body={"state": "draining"}),
    "list_slicings": Rule(may=OPERATOR, path={"host": "{host}"}),
    "divide_card": Rule(
        may=OPERATOR, path={"host": "{host}", "card": "0"}, body={"profiles": []}, states=frozenset({409})
    ),
    "invite_host": Rule(may=OPERATOR, body={}),
    "upgrade_host": Rule(may=OPERATOR, path={"host": "{host}"}, states=frozenset({409})),
    "remove_host": Rule(may=OPERATOR, path={"host": "{host}"}, states=frozenset({403, 409})),
    "list_host_costs": Rule(may=OPERATOR),
    "show_host_capacity": Rule(may=OPERATOR),
    "set_host_cost": Rule(
        may=OPERATOR, path={"host": "{host}"}, body={"micros_per_hour": 1_200_000, "currency": "USD"}
    ),
    "list_sites": Rule(may=OPERATOR),
    "show_site": Rule(may=OPERATOR, path={"site": "simulated"}),
    "check_site": Rule(may=OPERATOR, path={"site": "simulated"}),
    "add_site": Rule(may=OPERATOR, body={"name": "sky", "kind": "simulated", "options": {"style": "cloud"}}),
    "remove_site": Rule(may=OPERATOR, path={"site": "clouds"}),
    "allow_site": Rule(may=OPERATOR, path={"site": "clouds", "organisation": "{organisation}"}),
    "deny_site": Rule(may=OPERATOR, path={"site": "clouds", "organisation": "{organisation}"}),
    "list_accounts": Rule(may=OPERATOR),
    "show_account": Rule(may=OPERATOR, path={"account": "far"}),
    "check_account": Rule(may=OPERATOR, path={"account": "far"}),
    "add_account": Rule(may=OPERATOR, body={"name": "more", "provider": "lambda", "secret": "sk-more"}),
    "remove_account": Rule(may=OPERATOR, path={"account": "far"}, query="force=true"),
    "set_account_key": Rule(may=OPERATOR, path={"account": "far"}, body={"secret": "sk-other"}),
    "set_account_limit": Rule(may=OPERATOR, path={"account": "far"}, body={"limit_micros": 5_000_000}),
    "share_account": Rule(may=OPERATOR, path={"account": "far", "shared": "{project}"}, body={}),
    "unshare_account": Rule(may=OPERATOR, path={"account": "far", "shared": "{project}"}),
    "list_orphans": Rule(may=OPERATOR, path={"account": "far"}, states=frozenset({503})),
    "sweep_account": Rule(may=OPERATOR, path={"account": "far"}, states=frozenset({503})),
    "list_images": Rule(may=SEES, query=IN),
    "make_image": Rule(may=WORKS, query=IN, body={"name": "again", "recipe": "base"}),
    "show_image": Rule(may=SEES, path={"image": "{image}"}, query=IN),
    "delete_image": Rule(may=WORKS, path={"image": "{image}"}, query=IN),
    "list_instances": Rule(may=SEES, query=IN),
    "launch_instances": Rule(may=WORKS, query=IN, body=LAUNCH),
    "explain_placement": Rule(may=WORKS, query=IN, body=LAUNCH),
    "list_queue": Rule(may=SEES, query=IN),
    "list_bid_prices": Rule(may=SEES, query=IN),
    "show_queued": Rule(may=SEES, path={"queued": "{queued}"}, query=IN),
    "cancel_queued": Rule(may=WORKS, path={"queued": "{queued}"}, query=IN),
    "show_instance": Rule(may=SEES, path={"instance": "{instance}"}, query=IN),
    "change_instance": Rule(
        may=WORKS, path={"instance": "{instance}"}, query=IN, body={"labels": {"team": "blue"}}
    ),
    "fetch_archive": Rule(may=WORKS, path={"instance": "{instance}"}, query=IN + "&path=/etc/hostname"),
    "delete_instance": Rule(may=WORKS, path={"instance": "{instance}"}, query=IN),
    "start_instance": Rule(may=WORKS, path={"instance": "{instance}"}, query=IN),
    "stop_instance": Rule(may=WORKS, path={"instance": "{instance}"}, query=IN),
    "acknowledge_notice": Rule(may=WORKS, path={"instance": "{instance}"}, query=IN),
    "restart_instance": Rule(may=WORKS, path={"instance": "{instance}"}, query=IN),
    "resize_instance": Rule(
        may=WORKS, path={"instance": "{instance}"}, query=IN, body={"shape": {"vcpus": 3}}
    ),
    "exec_in_instance": Rule(
        may=WORKS, path={"instance": "{instance}"}, query=IN, body={"command": ["true"]}
    ),
    "show_log": Rule(may=WORKS, path={"instance": "{instance}"}, query=IN),
    "list_host_readings": Rule(may=OPERATOR),
    "show_host_readings": Rule(may=OPERATOR, path={"host": "{host}"}),
    "list_instance_readings": Rule(may=SEES, query=IN),
    "show_instance_readings": Rule(may=SEES, path={"instance": "{instance}"}, query=IN),
    "list_snapshots": Rule(may=SEES, path={"instance": "{instance}"}, query=IN),
    "make_snapshot": Rule(may=WORKS, path={"instance": "{instance}"}, query=IN, body={"name": "now"}),
    "delete_snapshot": Rule(may=WORKS, path={"instance": "{instance}", "snapshot": "{snapshot}"}, query=IN),
    "restore_instance": Rule(
        may=WORKS, path={"instance": "{instance}"}, query=IN, body={"snapshot": "before"}
    ),
    "list_runs": Rule(may=SEES, query=IN),
    "create_run": Rule(may=WORKS, query=IN, body={"command": ["true"], "secrets": {"TOKEN": "hush"}}),
    "show_run": Rule(may=SEES, path={"run": "{run}"}, query=IN),
    "cancel_run": Rule(may=WORKS, path={"run": "{run}"}, query=IN),
    "retry_run": Rule(may=WORKS, path={"run": "{run}"}, query=IN, states=frozenset({409})),
    "show_run_log": Rule(may=WORKS, path={"run": "{run}"}, query=IN),
    "fetch_run_outputs": Rule(may=WORKS, path={"run": "{run}"}, query=IN, states=frozenset({404})),
    "fetch_run_checkpoint": Rule(
        may=WORKS, path={"run": "{run}"}, query=IN + "&name=step-1", states=frozenset({404})
    ),
    "show_run_files": Rule(may=WORKS, path={"digest": "0" * 64}, query=IN),
    "upload_run_files": Rule(
        may=WORKS,
        path={"digest": "0" * 64},
        query=IN,
        body={"offset": 0, "size_bytes": 9, "content": "aGVsbG8="},
    ),
    "assemble_run_files": Rule(
        may=WORKS, path={"digest": "0" * 64}, query=IN, body={"digests": ["0" * 64], "sizes_bytes": [9]}
    ),
    "check_network": Rule(may=SEES, query=IN + "&source=internet&target=web&port=22"),
    "show_network_graph": Rule(may=SEES, query=IN),
    "list_networks": Rule(may=SEES, query=IN),
    "create_network": Rule(may=WORKS, query=IN, body={"name": "inner"}),
    "show_network": Rule(may=SEES, path={"network": "{network}"}, query=IN),
    "delete_network": Rule(may=WORKS, path={"network": "{network}"}, query=IN),
    "peer_network": Rule(
        may=BUYS,
        path={"network": "{network}", "peer_project": "{project}", "peer_network": "default"},
        query=IN,
    ),
    "unpeer_network": Rule(
        may=BUYS,
        path={"network": "{network}", "peer_project": "{project}", "peer_network": "default"},
        query=IN,
        states=frozenset({404}),
    ),
    "list_subnets": Rule(may=SEES, query=IN),
    "create_subnet": Rule(may=WORKS, query=IN, body={"name": "part", "network": "acme-net", "prefix": 28}),
    "show_subnet": Rule(may=SEES, path={"network": "acme-net", "subnet": "acme-part"}, query=IN),
    "delete_subnet": Rule(may=WORKS, path={"network": "acme-net", "subnet": "acme-part"}, query=IN),
    "list_acls": Rule(may=SEES, query=IN),
    "create_acl": Rule(may=WORKS, query=IN, body={"name": "outer"}),
    "show_acl": Rule(may=SEES, path={"acl": "{acl}"}, query=IN),
    "delete_acl": Rule(may=WORKS, path={"acl": "{acl}"}, query=IN),
    "add_acl_rule": Rule(
        may=WORKS,
        path={"acl": "{acl}"},
        query=IN,
        body={"direction": "in", "number": 9, "action": "deny", "peer": "10.0.0.0/8"},
    ),
    "remove_acl_rule": Rule(
        may=WORKS, path={"acl": "{acl}", "direction": "in", "number": "1"}, query=IN, states=frozenset({404})
    ),
    "attach_acl": Rule(may=WORKS, path={"acl": "{acl}"}, query=IN),
    "detach_acl": Rule(may=WORKS, path={"acl": "{acl}"}, query=IN, states=frozenset({409})),
    "list_datasets": Rule(may=SEES, query=IN),
    "create_dataset": Rule(
        may=WORKS, query=IN, body={"name": "more", "manifest": "0" * 64}, states=frozenset({409})
    ),
    "show_dataset": Rule(may=SEES, path={"dataset": "{dataset}"}, query=IN),
    "list_missing_chunks": Rule(may=WORKS, path={"dataset": "{dataset}"}, query=IN),
    "upload_chunk": Rule(
        may=WORKS,
        path={"dataset": "{dataset}", "digest": sha256(b"acme-data").hexdigest()},
        query=IN,
        body={"offset": 0, "size_bytes": 1, "content": "AA=="},
    ),
    "complete_dataset": Rule(may=WORKS, path={"dataset": "{dataset}"}, query=IN),
    "delete_dataset": Rule(may=WORKS, path={"dataset": "{dataset}"}, query=IN),
    "create_sweep": Rule(
        may=WORKS, query=IN, body={"run": {"command": ["train"]}, "grid": {"lr": ["1", "2"]}}
    ),
    "list_volumes": Rule(may=SEES, query=IN),
    "create_volume": Rule(may=WORKS, query=IN, body={"name": "more", "size_bytes": 1 << 30}),
    "show_volume": Rule(may=SEES, path={"volume": "{volume}"}, query=IN),
    "resize_volume": Rule(may=WORKS, path={"volume": "{volume}"}, query=IN, body={"size_bytes": 2 << 30}),
    "attach_volume": Rule(may=WORKS, path={"volume": "{volume}"}, query=IN, body={"instance": "web"}),
    "detach_volume": Rule(may=WORKS, path={"volume": "{volume}"}, query=IN),
    "snapshot_volume": Rule(
        may=WORKS, path={"volume": "{volume}"}, query=IN, body={"name": "now"}, states=frozenset({409})
    ),
    "delete_volume_snapshot": Rule(
        may=WORKS, path={"volume": "{volume}", "snapshot": "none"}, query=IN, states=frozenset({404})
    ),
    "restore_volume": Rule(
        may=WORKS, path={"volume": "{volume}", "snapshot": "none"}, query=IN, states=frozenset({404})
    ),
    "recover_volume": Rule(may=WORKS, path={"volume": "{volume}"}, query=IN, states=frozenset({409})),
    "delete_volume": Rule(may=WORKS, path={"volume": "{volume}"}, query=IN),
    "list_addresses": Rule(may=SEES, query=IN),
    "create_address": Rule(may=WORKS, query=IN, body={}),
    "attach_address": Rule(may=WORKS, path={"address": "{address}"}, query=IN, body={"target": "web"}),
    "detach_address": Rule(may=WORKS, path={"address": "{address}"}, query=IN),
    "release_address": Rule(may=WORKS, path={"address": "{address}"}, query=IN),
    "list_balancers": Rule(may=SEES, query=IN),
    "create_balancer": Rule(may=WORKS, query=IN, body={"name": "front", "port": 80, "instances": ["web"]}),
    "show_balancer": Rule(may=SEES, path={"balancer": "{balancer}"}, query=IN),
    "delete_balancer": Rule(may=WORKS, path={"balancer": "{balancer}"}, query=IN),
    "add_backends": Rule(may=WORKS, path={"balancer": "{balancer}"}, query=IN, body={"instances": ["web"]}),
    "remove_backends": Rule(
        may=WORKS, path={"balancer": "{balancer}"}, query=IN, body={"instances": ["web"]}
    ),
    "list_published_ports": Rule(may=SEES, query=IN),
    "publish_port": Rule(may=WORKS, query=IN, body={"instance": "web", "guest_port": 8080}),
    "unpublish_port": Rule(may=WORKS, path={"id": "{published}"}, query=IN),
    "list_security_groups": Rule(may=SEES, query=IN),
    "create_security_group": Rule(may=WORKS, query=IN, body={"name": "front"}),
    "show_security_group": Rule(may=SEES, path={"group": "default"}, query=IN),
    "delete_security_group": Rule(may=WORKS, path={"group": "{group}"}, query=IN),
    "allow_traffic": Rule(
        may=WORKS, path={"group": "{group}"}, query=IN, body={"direction": "in", "peer": "10.0.0.0/8"}
    ),
    "revoke_traffic": Rule(may=WORKS, path={"group": "{group}", "rule": "{rule}"}, query=IN),
    "attach_security_group": Rule(may=WORKS, path={"group": "{group}", "instance": "{instance}"}, query=IN),
    "detach_security_group": Rule(
        may=WORKS, path={"group": "{group}", "instance": "{instance}"}, query=IN, states=frozenset({409})
    ),
    "list_events": Rule(may=SEES, query=IN),
    "list_instance_events": Rule(may=SEES, path={"instance": "{instance}"}, query=IN),
    "follow_events": Rule(may=SEES, query=IN),
    "list_gpus": Rule(may=EVERYONE),
    "list_offers": Rule(may=EVERYONE, query="gpu=V100&limit=1"),
    "list_providers": Rule(may=EVERYONE),
    "list_usable_providers": Rule(may=SEES, query=IN),
    "list_rates": Rule(may=EVERYONE),
    "estimate_workload": Rule(may=EVERYONE, body={"model": "resnet18", "batch": 8, "gpu": ["V100"]}),
    "make_plan": Rule(may=EVERYONE, body={"hours": 10, "top": 1}),
    "recommend_gpus": Rule(may=EVERYONE, body={"purpose": "training"}),
    "show_prices": Rule(may=EVERYONE),
    "set_prices": Rule(may=OPERATOR, body={"text": BOOK}),
    "show_quote": Rule(may=COUNTS, query=IN, body={"shape": {"vcpus": 1}}),
    "show_bill": Rule(may=COUNTS, query=IN),
    "list_bill_lines": Rule(may=COUNTS, query=IN),
    "export_focus": Rule(may=PAYS, query=IN),
    "verify_bills": Rule(may=OPERATOR),
    "show_margin": Rule(may=OPERATOR),
    "list_costs": Rule(may=COUNTS, query=IN),
    "show_budget": Rule(may=COUNTS, query=IN),
    "set_budget": Rule(may=OWNER, query=IN, body={"micros": 1}),
    "remove_budget": Rule(may=OWNER, query=IN),
    "set_budget_cap": Rule(may=OPERATOR, query=IN, body={"micros": 1}),
    "remove_budget_cap": Rule(may=OPERATOR, query=IN),
    "list_credits": Rule(may=COUNTS, query=IN),
    "make_credit": Rule(may=OPERATOR, query=IN, body={"micros": 1, "reason": "sorry"}),
    "show_billing": Rule(may=PAYS, query=IN),
    "set_billing": Rule(may=OPERATOR, query=IN, body={"currency": "USD"}),
    "make_payment": Rule(may=OPERATOR, query=IN, body={"micros": 1}),
    "list_purchases": Rule(may=COUNTS, query=IN),
    "make_purchase": Rule(may=BUYS, query=IN, body={"instance": "web"}, states=frozenset({409})),
    "preview_purchase": Rule(may=COUNTS, query=IN, body={"instance": "web"}, states=frozenset({409})),
    "change_renewal": Rule(may=BUYS, path={"purchase": "{purchase}"}, query=IN, body={"renews": False}),
    "upgrade_purchase": Rule(may=BUYS, path={"purchase": "{purchase}"}, query=IN),
    "end_purchase": Rule(may=BUYS, path={"purchase": "{purchase}"}, query=IN),
    "list_purchase_limits": Rule(may=COUNTS, query=IN),
    "set_purchase_limit": Rule(may=OWNER, path={"member": "{member}"}, query=IN, body={"micros": 1}),
    "remove_purchase_limit": Rule(may=OWNER, path={"member": "{member}"}, query=IN),
    "list_invoices": Rule(may=PAYS, query=IN),
    "make_invoice": Rule(may=OPERATOR, query=IN, body={"month": "2026-01"}, states=frozenset({409})),
    "preview_invoice": Rule(may=PAYS, query=IN),
    "preview_invoice_as_pdf": Rule(may=PAYS, query=IN),
    "show_invoice": Rule(may=PAYS, path={"month": "2026-01"}, query=IN, states=frozenset({404})),
    "show_invoice_as_pdf": Rule(may=PAYS, path={"month": "2026-01"}, query=IN, states=frozenset({404})),
}

DOCUMENT = document()
OPERATIONS = {
    operation["operationId"]: (method.upper(), path, operation)
    for path, methods in DOCUMENT["paths"].items()
    for method, operation in methods.items()
}


def test_every_operation_has_a_rule_and_every_rule_an_operation() -> None:
    assert sorted(RULES) == sorted(OPERATIONS)


PUBLIC = ("show_health", "show_openapi")


def test_only_health_and_the_document_are_public() -> None:
    assert (
        tuple(name for name, (_, _, operation) in OPERATIONS.items() if not operation["security"]) == PUBLIC
    )


@pytest.fixture(scope="module")
def unchanged_server(
    furnished: tuple[Path, Tenants], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ApiServer]:
    """One server for all operations that change nothing."""
    server = copied(furnished[0], tmp_path_factory.mktemp("read") / "server")
    yield server
    server.close()


class Contents:
    """The contents of a database. All rows are read again only after a commit."""

    def __init__(self, server: ApiServer) -> None:
        self._connection = sqlite3.connect(server.cloud.at.folder / "cloud.db")
        self._commits, self._rows = self._counted(), self._read()

    def changed(self) -> list[str]:
        """The rows that were added or changed since the last call, or that are missing now."""
        if (commits := self._counted()) == self._commits:
            return []
        before, self._commits, self._rows = self._rows, commits, self._read()
        return sorted(before ^ self._rows)

    def close(self) -> None:
        self._connection.close()

    def _counted(self) -> int:
        """A number that changes with every commit of another connection."""
        return int(self._connection.execute("PRAGMA data_version").fetchone()[0])

    def _read(self) -> set[str]:
        return set(self._connection.iterdump())


def all_rows(server: ApiServer) -> set[str]:
    contents = Contents(server)
    try:
        return contents._rows
    finally:
        contents.close()


@pytest.fixture(scope="module")
def contents(unchanged_server: ApiServer) -> Iterator[Contents]:
    contents = Contents(unchanged_server)
    yield contents
    contents.close()


def test_a_change_of_the_contents_is_noticed(unchanged_server: ApiServer, contents: Contents) -> None:
    contents.changed()
    for row in ("INSERT INTO worker (id, until_us) VALUES ('one', 1)", "DELETE FROM worker WHERE id = 'one'"):
        unchanged_server.cloud.services.database.write(lambda tx, row=row: tx.run(row))  # type: ignore[misc]
        assert len(contents.changed()) == 1
        assert contents.changed() == []


@pytest.mark.parametrize("name", [name for name in OPERATIONS if name not in PUBLIC])
def test_unauthorised_requests_reveal_and_change_nothing(
    unchanged_server: ApiServer, contents: Contents, tenants: Tenants, name: str
) -> None:
    contents.changed()  # by requests of other tests that only read
    nobody = asked(unchanged_server, tenants, name, None)
    assert (nobody.status, nobody.code, nobody.headers["www-authenticate"]) == (
        401,
        "not_authenticated",
        "Bearer",
    )
    for who in BAD_KEYS:
        answer = asked(unchanged_server, tenants, name, who)
        assert (answer.status, answer.code) == (401, "not_authenticated"), who
    for who in sorted(EVERYONE - RULES[name].may - RULES[name].own):
        answer = asked(unchanged_server, tenants, name, who)
        assert answer.status in (403, 404), (who, answer)
        if who == "other" and "{" in OPERATIONS[name][1] + RULES[name].query:
            assert answer.status == (403 if _is_for_operators(name) else 404), (
                "a response reveals that it exists"
            )
        assert b"acme" not in answer.body, who
    assert contents.changed() == []


STREAM = "follow_events"  # endless; tested in tests/story
ALLOWED = [
    (name, who) for name, rule in RULES.items() if name != STREAM for who in sorted(rule.may | rule.own)
]


@pytest.mark.parametrize(("name", "who"), ALLOWED)
def test_authorised_requests_are_answered(
    request: pytest.FixtureRequest, tenants: Tenants, name: str, who: str
) -> None:
    server = request.getfixturevalue("unchanged_server" if OPERATIONS[name][0] == "GET" else "server")
    answer = asked(server, tenants, name, who)
    assert answer.status < 300 or answer.status in RULES[name].states, answer
    assert b"no such project" not in answer.body
    if who in RULES[name].own:
        assert tenants.ids["instance"].encode() not in answer.body
        assert tenants.ids["project"].encode() not in answer.body


def test_other_tenants_find_nothing_by_name(server: ApiServer, tenants: Tenants) -> None:
    other = tenants.keys["other"]
    for target in (
        "/v1/instances/web",
        "/v1/images/tools",
        "/v1/instances/web/snapshots",
        "/v1/instances/web/log",
    ):
        assert server.ask("GET", target, other).status == 404, target
    assert server.ask("GET", "/v1/instances", other).json["items"] == []
    assert server.ask("GET", "/v1/events", other).json["items"] == []
    assert server.ask("DELETE", f"/v1/keys/{tenants.ids['spare']}", other).status == 404
    assert server.ask("DELETE", f"/v1/members/{tenants.ids['viewer']}", other).status == 404


def test_login_details_are_shown_only_to_those_who_may_log_in(server: ApiServer, tenants: Tenants) -> None:
    def urls(who: str) -> list[Any]:
        query = f"?project={tenants.ids['project']}"
        one = server.ask("GET", f"/v1/instances/web{query}", tenants.keys[who]).json
        page = server.ask("GET", f"/v1/instances{query}", tenants.keys[who]).json
        return [one["jupyter"], *(each["jupyter"] for each in page["items"])]

    for who in ("owner", "member"):
        assert all("token=" in each["url"] for each in urls(who))
    for who in ("viewer", "capped", "operator"):
        assert urls(who) == [None, None]


def asked(server: ApiServer, tenants: Tenants, name: str, who: str | None) -> Answer:
    method, path, _ = OPERATIONS[name]
    rule = RULES[name]
    ids = tenants.ids
    words = {"project": ids["project"], **{word: text.format(**ids) for word, text in rule.path.items()}}
    target = path.format(**words)
    if rule.query:
        target += "?" + rule.query.format(**ids)
    return server.ask(method, target, tenants.keys[who] if who else None, body=rule.body)


def _is_for_operators(name: str) -> bool:
    return bool(OPERATIONS[name][2]["x-scope"] == "installation")
