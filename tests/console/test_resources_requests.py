"""Pages of networks, runs, hosts and alerts without a browser: hostile texts, bad input, other tenants, many rows."""

import html
import re
import sqlite3
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.api.asking import Tenants
from tests.console.furnishing import put_alert
from tests.console.pages import RULES, address
from tests.console.visiting import ConsoleServer, copied_console

from teraflock.console.page import ConsolePage
from teraflock.console.pages.alerts import open_alerts
from teraflock.console.pages.all import PAGES, RESOURCES
from teraflock.instance.bid import store as bid_store
from teraflock.instance.bid.model import Auction
from teraflock.storage.sqlite_transaction import SqliteTransaction
from teraflock.wire.event import EventAnswer

AT = datetime(2026, 1, 1, tzinfo=UTC)
PROJECT = "/console/projects/default"
HOSTILE = "<script>alert(1)</script>"
MANY = 120
"""More than a page has."""


@pytest.fixture
def owner(console: ConsoleServer, tenants: Tenants) -> str:
    return console.session(tenants.keys["owner"])


def test_hostile_texts_of_runs_balancers_and_events_are_escaped(
    console: ConsoleServer, tenants: Tenants, owner: str
) -> None:
    made = {"name": "bad", "command": [HOSTILE], "environment": {"X": HOSTILE}}
    assert console.ask("POST", "/v1/runs", tenants.keys["owner"], body=made).status == 202
    put_alert(console.cloud.at.folder.parent, "host.hot", {"host": HOSTILE, "card": HOSTILE, "celsius": 99})
    operator = console.session(tenants.keys["operator"])
    for target, session in (
        (f"{PROJECT}/runs", owner),
        (f"{PROJECT}/runs/bad", owner),
        (f"{PROJECT}/reach?source={HOSTILE}&target=web&port=22", owner),
        (f"{PROJECT}/reach-check?source=web&target={HOSTILE}&port={HOSTILE}", owner),
        (f"{PROJECT}/runs?after={HOSTILE}", owner),
        (f"{PROJECT}/queue?after={HOSTILE}", owner),
        (f"/console/hosts?after={HOSTILE}", operator),
        (f"/console/hosts-joined?since={HOSTILE}", operator),
        ("/console/alerts", operator),
    ):
        page = console.get(target, session)
        assert "<script>alert" not in page.text, target
    assert "&lt;script&gt;" in console.get(f"{PROJECT}/runs/bad", owner).text
    assert HOSTILE in console.get("/console/alerts", operator).words


def test_auction_prices_are_shown_without_hosts_and_bidders(console: ConsoleServer, owner: str) -> None:
    assert "Launch with a bid" in console.get(f"{PROJECT}/bids", owner).words
    for number, gpu in enumerate(("V100-SXM2", "A100-SXM4-80")):
        auction = Auction(
            id=f"auc_{number}", at=AT, host_id="hst_secret", gpu=gpu, region="north", currency="USD",
            floor_micros=500_000, price_micros=1_250_000,
        )  # fmt: skip
        console.cloud.database.write(lambda tx, auction=auction: bid_store.add(tx, auction))  # type: ignore[misc]
    words = console.get(f"{PROJECT}/bids", owner).words
    assert "1.2500 USD/h" in words, words
    assert "hst_secret" not in words
    narrowed = console.get(f"{PROJECT}/bids?gpu=V100&region=north", owner).words
    assert ("V100-SXM2" in narrowed, "A100-SXM4-80" in narrowed) == (True, False)


def test_alerts_without_details_are_shown(console: ConsoleServer, tenants: Tenants) -> None:
    put_alert(console.cloud.at.folder.parent, "host.xid", {})
    page = console.get("/console/alerts", console.session(tenants.keys["operator"]))
    assert (page.status, "logged an error: Xid ?" in page.words) == (200, True)


@pytest.mark.parametrize(
    ("path", "form", "words"),
    [
        ("networks", {"name": "Bad Name!"}, "name"),
        ("networks", {}, "The name of the network is missing"),
        ("networks/acme-net/subnets", {"name": "x", "addresses": "10.0.0.1/24"}, "10.0.0.1/24"),
        ("networks/acme-net/subnets", {"name": "x", "addresses": "/99999999999"}, "size"),
        ("networks/acme-net/peerings", {"peer": "a/b/c"}, "is not a network"),
        ("networks/nothing/delete", {}, "no network"),
        (
            "security-groups/acme-web/rules",
            {"peer": "0.0.0.0/0", "protocol": "tcp", "ports": "70000"},
            "70000",
        ),
        ("security-groups/acme-web/rules", {"peer": "10.0.0.1/8"}, "10.0.0.1/8"),
        ("security-groups/acme-web/rules", {"peer": "sg:gone"}, "gone"),
        ("security-groups/default/delete", {}, "cannot be deleted"),
        ("acls/acme-border/rules", {"number": "99999999999", "peer": "0.0.0.0/0"}, "number"),
        ("acls/acme-border/rules", {"number": "x", "peer": "0.0.0.0/0"}, "not a whole number"),
        ("acls/acme-border/rules/in/<b>/remove", {}, "not the number of a rule"),
        ("open-ports", {"instance": "web", "guest_port": "99999999999"}, "port"),
        ("open-ports", {"instance": "nothing", "guest_port": "80"}, "nothing"),
        ("balancers", {"name": "x", "port": "80", "backends": "nothing"}, "nothing"),
        ("balancers", {"name": "x", "port": "80", "backends": "web", "certificate": "no PEM"}, "certificate"),
        ("queue/nothing/cancel", {}, "nothing"),
        ("runs/nothing/cancel", {}, "nothing"),
    ],
)
def test_bad_input_is_one_error_on_the_page(
    console: ConsoleServer, owner: str, path: str, form: dict[str, str], words: str
) -> None:
    page = console.post(f"{PROJECT}/{path}", owner, form)
    assert 400 <= page.status < 500, page.status
    assert words in page.words
    assert page.text.count('role="alert"') == 1


def test_names_of_another_tenants_things_look_like_names_of_nothing(
    unchanged: ConsoleServer, tenants: Tenants
) -> None:
    other = unchanged.session(tenants.keys["other"])
    ids = tenants.ids
    for kind, real in (
        ("runs", ids["run"]),
        ("security-groups", ids["group"]),
        ("acls", ids["acl"]),
        ("balancers", ids["balancer"]),
    ):
        made_up = real[:-4] + "0000"
        seen = unchanged.get(f"{PROJECT}/{kind}/{real}", other)
        absent = unchanged.get(f"{PROJECT}/{kind}/{made_up}", other)
        assert seen.status == absent.status == 404
        assert seen.words.replace(real, made_up) == absent.words


def test_operators_see_the_queue_of_every_tenant(unchanged: ConsoleServer, tenants: Tenants) -> None:
    seen = unchanged.get(f"{PROJECT}/queue", unchanged.session(tenants.keys["operator"]))
    assert "acme / default" in seen.words, "the operator's own project has nothing in the queue"
    for who in ("owner", "other"):
        assert (
            "The whole queue"
            not in unchanged.get(f"{PROJECT}/queue", unchanged.session(tenants.keys[who])).words
        )


def test_an_alert_is_open_until_the_event_that_ends_it() -> None:
    def event(number: int, kind: str, **details: Any) -> EventAnswer:
        return EventAnswer(id=f"evt_{number}", at=AT, kind=kind, subject="", details=details)

    newest_first = [
        event(6, "host.card-lost", host="a", card="1"),
        event(5, "host.cool", host="a", card="1", celsius=60),
        event(4, "host.hot", host="a", card="1", celsius=90),
        event(3, "host.hot", host="b", card="1", celsius=90),
        event(2, "host.card-back", host="a", card="1"),
        event(1, "host.disk-filling", host="a", percent=90),
    ]
    assert [each.id for each in open_alerts(newest_first)] == ["evt_6", "evt_3"]
    assert open_alerts(()) == ()


# Many rows: a page may not ask the database once for each row


NEEDS_A_SNAPSHOT = ("confirm_volume_restore", "confirm_volume_snapshot_delete", "confirm_volume_recovery")
READING = [
    page
    for noun in RESOURCES
    for page in noun.pages.all
    if page.method == "GET" and not page.stream and page.name not in NEEDS_A_SNAPSHOT
]
OF_TEAM = [
    page
    for page in PAGES
    if page.name
    in ("list_members", "list_keys", "list_ssh_keys", "show_quotas", "show_audit", "show_account")
]
OF_HOSTS = [
    page for page in PAGES if page.name in ("list_hosts", "show_host", "list_alerts", "show_capacity")
]


@pytest.fixture(scope="module")
def crowded(
    furnished: tuple[Path, Tenants], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ConsoleServer]:
    """The same console with many more instances, runs, hosts, groups and queued launches."""
    server = copied_console(furnished[0], tmp_path_factory.mktemp("many") / "server")
    with sqlite3.connect(server.cloud.at.folder / "cloud.db") as connection:
        for table, where, changes in (
            ("instance", "name = 'web'", {"id": "'ins_' || n", "name": "'web-' || n", "address": "NULL"}),
            ("run", "name = 'acme-job'", {"id": "'run_' || n", "name": "'job-' || n"}),
            ("host", "kind = 'own'", {"id": "'hst_' || n", "name": "'host-' || n"}),
            ("security_group", "name = 'acme-web'", {"id": "'sg_' || n", "name": "'group-' || n"}),
            ("acl", "name = 'acme-border'", {"id": "'acl_' || n", "name": "'acl-' || n"}),
            ("queued_launch", "name = 'later'", {"id": "'que_' || n", "name": "'later-' || n"}),
            ("volume", "1", {"id": "'vol_' || n", "name": "'volume-' || n"}),
            ("dataset", "1", {"id": "'dat_' || n", "name": "'set-' || n", "digest": "'d' || n"}),
            ("member", "name = 'viewer@acme'", {"id": "'mem_' || n", "name": "'viewer-' || n"}),
            ("api_key", f"id = '{furnished[1].ids['spare']}'", {"id": "'key_' || n", "name": "'key-' || n"}),
        ):
            multiply(connection, table, where, changes)
    connection.close()
    yield server
    server.close()


def multiply(connection: sqlite3.Connection, table: str, where: str, changes: dict[str, str]) -> None:
    columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
    numbers = (
        f"WITH RECURSIVE number(n) AS (SELECT 100 UNION ALL SELECT n + 1 FROM number WHERE n < {99 + MANY})"
    )
    values = ", ".join(changes.get(each, f"one.{each}") for each in columns)
    one = f"(SELECT * FROM {table} WHERE {where} LIMIT 1) AS one"
    made = connection.execute(
        f"{numbers} INSERT INTO {table} ({', '.join(columns)}) SELECT {values} FROM number, {one}"
    )
    assert made.rowcount in (MANY, -1)


@pytest.mark.parametrize("page", [*READING, *OF_TEAM, *OF_HOSTS], ids=lambda page: page.name)
def test_more_rows_need_no_more_statements(
    unchanged: ConsoleServer,
    crowded: ConsoleServer,
    tenants: Tenants,
    page: ConsolePage,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    few, many = (statements(server, tenants, page, monkeypatch) for server in (unchanged, crowded))
    assert many <= few + 3, f"{few} statements for few rows, {many} for {MANY} more"


def statements(
    server: ConsoleServer, tenants: Tenants, page: ConsolePage, monkeypatch: pytest.MonkeyPatch
) -> int:
    who = "operator" if page in OF_HOSTS else "owner"
    session, target = server.session(tenants.keys[who]), address(page, tenants) + RULES[page.name].query
    assert server.get(target, session).status == 200  # caches are full now
    count = 0
    for name in ("all", "one"):
        plain = getattr(SqliteTransaction, name)

        def counted(self: Any, sql: str, /, plain: Any = plain, **values: object) -> Any:
            nonlocal count
            count += 1
            return plain(self, sql, **values)

        monkeypatch.setattr(SqliteTransaction, name, counted)
    got = server.get(target, session)
    monkeypatch.undo()
    assert got.status == 200, re.sub(r"\s+", " ", got.words)
    return count


@pytest.mark.parametrize(
    ("target", "row"),
    [
        (f"{PROJECT}/instances", r'href="/console/projects/\w+/instances/([\w-]+)"'),
        (f"{PROJECT}/volumes", r'href="/console/projects/\w+/volumes/([\w-]+)"'),
        (f"{PROJECT}/datasets", r"/data/([\w-]+)<"),
        (f"{PROJECT}/runs", r'id="(run_\w+)"'),
        ("/console/team", r"team/members/(mem_\w+)/role"),
        ("/console/team/keys", r"team/keys/(key_\w+)/rotate"),
    ],
)
def test_a_long_list_comes_in_pages_that_lose_nothing(
    crowded: ConsoleServer, tenants: Tenants, target: str, row: str
) -> None:
    session = crowded.session(tenants.keys["owner"])
    seen: list[str] = []
    address: str | None = target
    pages = 0
    while address:
        text = crowded.get(address, session).text
        rows = list(dict.fromkeys(re.findall(row, text)))
        assert 0 < len(rows) <= 100, "a page has a limit"
        seen += rows
        pages += 1
        following = re.findall(r'<a class="button" href="([^"]+)">Next page', text)
        address = html.unescape(following[0]) if following else None
    assert (pages >= 2, len(seen) > MANY) == (True, True)
    assert len(seen) == len(set(seen)), "each row is on one page"


def test_a_live_list_stays_on_its_page(crowded: ConsoleServer, tenants: Tenants) -> None:
    session = crowded.session(tenants.keys["owner"])
    first = crowded.get(f"{PROJECT}/instances", session).text
    after = re.findall(r"after=(\w+)", first)[0]
    second = crowded.get(f"{PROJECT}/instances?after={after}", session).text
    assert f'id="after" name="after" value="{after}"' in second
    assert 'hx-include="form.filters, #after"' in second
    rows = crowded.get(f"{PROJECT}/instances-rows?after={after}", session).text
    assert f'id="after" name="after" value="{after}"' in rows
