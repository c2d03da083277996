"""What pages of the console read about hosts, groups and alerts in one statement each. On both databases."""

from datetime import UTC, datetime, timedelta

from teraflock.base.events import Event
from teraflock.base.ids import EventId
from teraflock.bill.margin import store as margins
from teraflock.fleet import store as fleet
from teraflock.fleet.alarms import ALERTS
from teraflock.fleet.card import store as cards
from teraflock.fleet.model import HostId
from teraflock.fleet.telemetry import store as readings
from teraflock.meter.ahead import ahead
from teraflock.network.security_group import store as groups
from teraflock.network.security_group.model import GroupId
from teraflock.storage.database import Database
from teraflock.storage.events import newest_of_project, record_event
from teraflock.tenant.model import ProjectId
from teraflock.tenant.project.store import owners_of_any_organisation

START = datetime(2026, 11, 16, tzinfo=UTC)


def test_statements_for_pages_run_on_an_empty_database(database: Database) -> None:
    some = [f"id_{number}" for number in range(30)]
    with database.read() as tx:
        assert cards.blocks(tx) == []
        assert fleet.names(tx, [HostId(each) for each in some]) == {}
        assert readings.last_of_own_hosts(tx, some) == readings.last_of_own_hosts(tx) == ()
        assert margins.rates_of_own_hosts(tx, some, after=0, limit=10) == []
        assert owners_of_any_organisation(tx, [ProjectId(each) for each in some]) == {}
        assert groups.member_counts(tx, ProjectId("prj_1")) == {}
        assert groups.names_of_members(tx, GroupId("sgr_1"), limit=5) == ()
        assert ahead(tx, ProjectId("prj_1"), 0, only=some).open == ()


def put(database: Database, event: Event) -> None:
    database.write(lambda tx: record_event(tx, event))


def test_alerts_are_found_among_other_events_newest_first(database: Database) -> None:
    kinds = ("host.hot", "server.started", "host.cool", "host.xid", "host.joined")
    for number, kind in enumerate(kinds):
        event = Event(
            id=EventId(f"evt_{number:016d}"), at=START + timedelta(seconds=number), kind=kind, subject="",
            project="prj_1" if kind == "host.cool" else "", details={},
        )  # fmt: skip
        put(database, event)
    with database.read() as tx:
        found = newest_of_project(tx, "", None, kinds=ALERTS, limit=10)
        assert [each.kind for each in found] == ["host.xid", "host.hot"]
        assert newest_of_project(tx, "", found[0].id, kinds=ALERTS, limit=10) == found[1:]
        assert newest_of_project(tx, "", None, kinds=ALERTS, limit=1) == found[:1]
