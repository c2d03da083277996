"""Every table has one owner. Only its owner writes it; other readers are listed with the reason.

The import test does not see SQL: without this one, a store could reach into another noun's rows unnoticed.
"""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "src" / "teraflock"
READ = re.compile(r"\b(?:FROM|JOIN)\s+([a-z_]+)")
WRITERS = ("Table", "LifeCycle", "insert_into", "add_row", "add_missing_row", "put_row")
"""Names of a table as their first argument, or as the second after the transaction."""
WRITTEN = re.compile(r"\b(?:INSERT\s+INTO|UPDATE|DELETE\s+FROM)\s+([a-z_]+)")

OWNERS = {
    "api": "idempotency",
    "bill": (
        "account bill_cursor bill_profile budget budget_cap budget_notice charge charge_sum credit_grant invoice ledger"
        " price_book price_period purchase purchase_limit purchase_term trial_balance"
        " cost cost_cursor cost_host host_cost host_size host_use host_use_open"
    ),
    "fleet": (
        "host host_gpu host_label host_port host_reservation host_slicing left_behind reading_last reading_past"
        " site_watch"
    ),
    "dataset": "dataset",
    "image": "image",
    "instance": (
        "auction cloud_account cloud_account_use host_invitation instance instance_label instance_output joined_host"
        " disk_copy queued_launch site site_state site_use snapshot volume volume_copy volume_snapshot worker"
    ),
    "meter": "meter_behind meter_cursor meter_instance meter_interval meter_reading",
    "network": (
        "acl acl_attachment acl_rule address balancer balancer_backend network network_peering published_port"
        " security_group security_group_member security_group_rule subnet"
    ),
    "offer": "offer offer_count offer_past offer_shape offer_source",
    "reconcile": "alert_delivery ran_unwatched",
    "run": "run run_checkpoint run_secret run_sighting run_start",
    "storage": "event",
    "tenant": (
        "announcement api_key audit certificate console_link console_login console_session installation"
        " lesson_passed member member_identity member_role member_ssh_key organisation project sign_up used_once"
    ),
}
OWNER = {table: folder for folder, tables in OWNERS.items() for table in tables.split()}

READERS = {
    ("bill", "event"): "the proof of a bill reads the events themselves and shares no query with the biller",
    ("bill", "host"): "the proof of a bill, as above",
    ("bill", "meter_cursor"): "the proof of a bill, as above",
    ("bill", "meter_instance"): "the proof of a bill, as above",
    ("bill", "instance"): "spending limits per project: one statement for each account",
    ("dataset", "instance"): "a dataset cannot be deleted while instances read it, in one transaction",
    ("dataset", "organisation"): "datasets of deleted organisations are deleted",
    ("dataset", "project"): "datasets of removed projects are deleted",
    ("fleet", "instance"): "a host's room is its size less what instances hold: one statement for every host",
    ("image", "instance"): "an image cannot be deleted while instances boot from it, in one transaction",
    ("instance", "host"): "lists join the host's name",
    (
        "instance",
        "left_behind",
    ): "addresses of copies that a lost host may still run are taken: one statement",
    ("instance", "organisation"): "an operator's list names the organisation",
    ("instance", "address"): "public addresses count against the quota, with what instances hold",
    ("instance", "balancer"): "balancers have addresses in the project's network, and published ports",
    ("instance", "network"): "networks count against the quota, with what instances hold",
    ("instance", "published_port"): "published ports count against the quota, with what instances hold",
    ("instance", "project"): "an operator's list names the project",
    ("meter", "event"): "the meter takes the events of instances: this is how it learns of them",
    (
        "meter",
        "instance",
    ): "events that were missed show in the instance's sequence: one statement for all of them",
    ("network", "host"): "a published port is shown with the address of its host",
    ("network", "host_port"): "a check says which ports of an instance its host opens",
    ("network", "instance"): "members of a group join their addresses: one statement for every host",
    ("network", "instance_label"): "instances with a label are the backends of a balancer",
    ("network", "project"): "a project's network number is in its row",
    ("storage", "installation"): "a dump says which installation it is of",
    ("tenant", "image"): "a project can be removed only while it is empty, seen in the same transaction",
    ("tenant", "instance"): "a project can be removed only while it is empty, seen in the same transaction",
}


@cache
def relevant(path: Path) -> tuple[ast.AST, ...]:
    """The texts and calls in a module that may have SQL or a codec. Most modules have neither: they are not parsed."""
    text = path.read_text("utf-8")
    if not (READ.search(text) or WRITTEN.search(text) or any(f"{each}(" in text for each in WRITERS)):
        return ()
    return tuple(node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Constant | ast.Call))


def tables_of(path: Path, pattern: re.Pattern[str]) -> Iterator[str]:
    for node in relevant(path):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from (name for name in pattern.findall(node.value) if name in OWNER)


def codecs_of(path: Path) -> Iterator[str]:
    """The tables whose rows a store writes through `storage/table.py` or `LifeCycle`."""
    for node in relevant(path):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in WRITERS:
            names = [each.value for each in node.args[:2] if isinstance(each, ast.Constant)]
            yield from map(str, names[:1])


def stores() -> Iterator[tuple[str, Path]]:
    for path in sorted(PACKAGE.rglob("*.py")):
        yield path.relative_to(PACKAGE).parts[0], path


def test_every_table_has_an_owner() -> None:
    made: set[str] = set()
    for path in sorted((PACKAGE / "storage" / "migrations").glob("*.sql")):
        text = path.read_text("utf-8")
        made |= set(re.findall(r"CREATE TABLE (\w+)", text))
        made -= set(re.findall(r"DROP TABLE (\w+)", text))
        for before, after in re.findall(r"ALTER TABLE (\w+) RENAME TO (\w+)", text):
            made = made - {before} | {after}
    assert made == set(OWNER)


def test_only_its_owner_writes_a_table() -> None:
    astray = [
        f"{path.relative_to(PACKAGE)} writes `{table}` of {OWNER[table]}/"
        for folder, path in stores()
        for table in {*tables_of(path, WRITTEN), *codecs_of(path)}
        if OWNER[table] != folder
    ]
    assert astray == []


def test_other_readers_of_a_table_are_listed() -> None:
    found = {
        (folder, table)
        for folder, path in stores()
        for table in tables_of(path, READ)
        if OWNER[table] != folder
    }
    assert sorted(found) == sorted(READERS), "a new reader needs a reason; one that is gone leaves the list"
