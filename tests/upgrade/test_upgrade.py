"""An installation of an older version is updated, and restored from a backup made before the update."""

import sqlite3
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.api.asking import ApiServer
from tests.upgrade.installations import (
    OLD_SCHEMA,
    OLD_SQL,
    OPERATOR_KEY,
    OWNER_KEY,
    old_installation,
    rows,
)

from teraflock.app.installation.backup.create import create
from teraflock.app.installation.backup.restore import restore
from teraflock.app.installation.places import Places
from teraflock.app.settings import load_settings
from teraflock.base.clock import SystemClock, at_microseconds
from teraflock.base.errors import Refused
from teraflock.instance.across import store as across
from teraflock.instance.model import LocatedFilter
from teraflock.network.security_group import store as groups
from teraflock.network.security_group.rules import default_group
from teraflock.reconcile.bills import BillLoop
from teraflock.storage.migrate import load_migrations, schema_of
from teraflock.storage.open import open_as_it_is, open_database
from teraflock.tenant.model import ProjectId

CLOCK = SystemClock()
LATEST = len(load_migrations())
KEPT = ("organisation", "project", "member", "api_key", "audit", "charge", "ledger", "purchase", "price_book")
"""Tables whose rows do not change by themselves."""


def ignore_progress(_: str) -> None:
    pass


def schema(places: Places) -> int:
    database = open_as_it_is(str(places.cloud / "cloud.db"))
    try:
        return schema_of(database)
    finally:
        database.close()


def served(home: Path) -> dict[str, object]:
    """What the operator and an owner see, with their old keys, when the server of an installation runs."""
    server = ApiServer(home, load_settings(Places(home).server, {"TERA_LOOPS": "false"}))
    try:
        server.settle()
        server.cloud.loops.drift.turn()
        server.settle()
        page = server.ask("GET", "/v1/operator/instances", OPERATOR_KEY).json["items"]
        own = server.ask("GET", "/v1/instances", OWNER_KEY).json["items"]
        bill = server.ask("GET", "/v1/bill?month=2026-08", OWNER_KEY).json
        (invoice,) = server.ask("GET", "/v1/invoices", OWNER_KEY).json["items"]
        made = server.ask("POST", "/v1/instances", OWNER_KEY, body={"name": "new", "shape": {"vcpus": 1}})
        server.settle()
        BillLoop(server.cloud.services.nouns.bills, server.cloud.clock).turn()
        verified = server.ask("POST", "/v1/bill/verify", OPERATOR_KEY).json
        return {
            "instances": sorted((each["organisation"], each["instance"]["name"]) for each in page),
            "own": sorted(each["name"] for each in own),
            "billed": (bill["micros"], invoice["usage_micros"], invoice["due_micros"]),
            "launch": made.status,
            "faults": verified["faults"],
            "sound": verified["sound"],
        }
    finally:
        server.close()


def billed_then() -> tuple[int, ...]:
    """The charges of August of `acme` in the old file, and its invoice."""
    connection = sqlite3.connect(":memory:")
    connection.executescript(OLD_SQL.read_text("utf-8"))
    ((project,),) = connection.execute(
        "SELECT p.id FROM project p JOIN organisation o ON o.id = p.organisation_id"
        " WHERE o.name = 'acme' AND p.name = 'default'"
    )
    ((charged,),) = connection.execute(
        "SELECT SUM(micros) FROM charge WHERE project_id = ? AND month = '2026-08'", (project,)
    )
    ((usage, due),) = connection.execute(
        "SELECT usage_micros, due_micros FROM invoice WHERE project_id = ?", (project,)
    )
    connection.close()
    return charged, usage, due


EXPECTED = {
    "instances": [("acme", "batch"), ("acme", "web"), ("other", "theirs")],
    "own": ["batch", "web"],
    "billed": billed_then(),
    "launch": 202,
    "faults": [],
    "sound": True,
}


def test_the_fixture_has_an_older_schema(tmp_path: Path) -> None:
    assert schema(old_installation(tmp_path / "home")) == OLD_SCHEMA < LATEST


def test_an_old_installation_is_updated_when_it_is_opened(tmp_path: Path) -> None:
    places = old_installation(tmp_path / "home")
    before = {table: len(rows(places.cloud / "cloud.db", table)) for table in KEPT}
    open_database(str(places.cloud / "cloud.db"), CLOCK).close()
    assert schema(places) == LATEST
    assert {table: len(rows(places.cloud / "cloud.db", table)) for table in KEPT} == before
    assert served(places.home) == EXPECTED


def test_hosts_and_instances_from_before_sites_are_own_ones(tmp_path: Path) -> None:
    places = old_installation(tmp_path / "home")
    database = open_database(str(places.cloud / "cloud.db"), CLOCK)
    with database.read() as tx:
        sites = tx.all(
            "SELECT DISTINCT i.site, h.site, h.kind FROM instance i JOIN host h ON h.id = i.host_id"
        )
        kinds = tx.all("SELECT DISTINCT kind, cost_micros_per_hour, gone_at_us FROM host")
        views = across.located_in_all_projects(tx, LocatedFilter(), limit=9)
    database.close()
    assert [tuple(row) for row in sites] == [("simulated", "simulated", "own")]
    assert [tuple(row) for row in kinds] == [("own", None, None)]
    assert {(each.view.instance.spec.restart_policy, each.view.rented) for each in views} == {
        ("same-host", None)
    }


def test_a_backup_before_the_update_is_restored_after_it(tmp_path: Path) -> None:
    old = old_installation(tmp_path / "old")
    made = create(old, tmp_path / "backup", CLOCK, ignore_progress)
    assert made.schema == OLD_SCHEMA
    assert schema(old) == OLD_SCHEMA, "a backup does not change the schema"
    new = Places(tmp_path / "new")
    restore(new, tmp_path / "backup", CLOCK, ignore_progress)
    assert schema(new) == LATEST
    open_database(str(old.cloud / "cloud.db"), CLOCK).close()
    for table in KEPT:
        assert rows(new.cloud / "cloud.db", table) == rows(old.cloud / "cloud.db", table), table
    assert served(new.home) == EXPECTED


def test_a_restored_instance_is_not_charged_for_the_time_since_the_backup(tmp_path: Path) -> None:
    old = old_installation(tmp_path / "old")
    create(old, tmp_path / "backup", CLOCK, ignore_progress)
    restore(Places(tmp_path / "new"), tmp_path / "backup", CLOCK, ignore_progress)
    database = open_database(str(tmp_path / "new" / "cloud" / "cloud.db"), CLOCK)
    with database.read() as tx:
        ((phase,),) = tx.all("SELECT phase FROM instance WHERE name = 'web'")
        details = tx.all("SELECT details FROM event WHERE details LIKE '%\"web\"%' ORDER BY id DESC")[0][0]
        seen_at = tx.all("SELECT MAX(seen_at_us) FROM host")[0][0]
    database.close()
    assert phase == "away"
    assert f'"last_seen_us":{seen_at}' in details
    assert datetime.fromtimestamp(seen_at / 1e6, UTC) < datetime.now(UTC) - timedelta(minutes=1)


def test_sqlite_is_restored_into_postgresql_and_back(tmp_path: Path, postgres_address: str) -> None:
    old = old_installation(tmp_path / "old")
    create(old, tmp_path / "first", CLOCK, ignore_progress)
    middle, last = Places(tmp_path / "middle"), Places(tmp_path / "last")
    restore(middle, tmp_path / "first", CLOCK, ignore_progress, database=postgres_address)
    assert load_settings(middle.server, {}).database == postgres_address
    assert not (middle.cloud / "cloud.db").exists()
    with pytest.raises(Refused, match="already"):
        restore(
            Places(tmp_path / "third"), tmp_path / "first", CLOCK, ignore_progress, database=postgres_address
        )
    create(middle, tmp_path / "second", CLOCK, ignore_progress)
    restore(last, tmp_path / "second", CLOCK, ignore_progress, database="sqlite")
    open_database(str(old.cloud / "cloud.db"), CLOCK).close()
    for table in KEPT:
        assert rows(last.cloud / "cloud.db", table) == rows(old.cloud / "cloud.db", table), table
    assert served(last.home) == EXPECTED
    restore(middle, tmp_path / "second", CLOCK, ignore_progress, replace=True)
    database = open_database(postgres_address, CLOCK)
    with database.read() as tx:
        assert tx.all("SELECT COUNT(*) FROM organisation") == [(3,)]
    database.close()


def test_instances_from_before_security_groups_are_in_the_default_group(tmp_path: Path) -> None:
    places = old_installation(tmp_path / "home")
    database = open_database(str(places.cloud / "cloud.db"), CLOCK)
    with database.read() as tx:
        projects = tx.all("SELECT id, created_at_us FROM project WHERE removed_at_us IS NULL")
        for id, created_at_us in projects:
            wanted = default_group(ProjectId(id), at_microseconds(created_at_us))
            assert groups.groups(tx, ProjectId(id), wanted.created_at) == (wanted,)
            assert tx.one("SELECT 1 FROM security_group WHERE id = :id", id=wanted.id)
        placed = tx.all("SELECT id FROM instance WHERE address IS NOT NULL")
        joined = tx.all("SELECT instance_id FROM security_group_member")
    database.close()
    assert placed
    assert sorted(joined) == sorted(placed)
