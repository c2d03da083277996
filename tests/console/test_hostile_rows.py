"""Every page with hostile text in every column that can hold text of a tenant, a guest, a host or a browser.

Most of these columns accept only safe characters today. A page must not rely on that: each shows what a row has as
text.
"""

import re
import sqlite3
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pytest
from tests.api.asking import Tenants
from tests.console.browser import LEADING_ELSEWHERE
from tests.console.pages import RULES
from tests.console.visiting import ConsoleServer

from teraflock.console.page import PREFIX
from teraflock.console.pages.all import PAGES

NAMED: Final = (
    "organisation", "project", "member", "api_key", "host", "image", "security_group", "acl", "network", "subnet",
    "balancer", "queued_launch", "run", "volume", "dataset", "member_ssh_key",
)  # fmt: skip
"""Tables whose names pages show. An instance and its snapshots keep theirs: pages ask for them by name."""
COLUMNS: Final = (
    *((table, "name") for table in NAMED),
    ("console_session", "address"),
    ("console_session", "agent"),
    ("host", "region"),
    ("host_gpu", "name"),
    ("instance", "problem"),
    ("member_ssh_key", "fingerprint"),
    ("queued_launch", "reason"),
    ("run", "problem"),
    ("volume", "problem"),
    ("volume", "path"),
)
LABELS: Final = (("charge", "labels"), ("charge_sum", "labels"), ("instance", "labels"))
ELSEWHERE: Final = frozenset({*LEADING_ELSEWHERE, "draw_reach", "list_orphans", "show_invoice"})
"""Pages that lead to others, or whose thing this installation lacks. The picture is drawn by names of instances."""


def hostile(table: str, column: str) -> str:
    return f"<b>'\"{table}.{column}`&lt;b&gt;"


def poisoned(home: Path) -> None:
    with sqlite3.connect(home / "cloud.db") as database:
        for table, column in COLUMNS:
            database.execute(f"UPDATE {table} SET {column} = ? || rowid", (hostile(table, column),))
        for table, column in LABELS:
            words = hostile(table, column).replace('"', '\\"')
            database.execute(f"UPDATE {table} SET {column} = ?", (f'{{"{words}":"{words}"}}',))
        database.execute("UPDATE instance_label SET key = ?, value = ?", (hostile("label", "key"),) * 2)
        database.execute(
            "UPDATE event SET details = json_set(details, '$.name', ?)", (hostile("event", "name"),)
        )
        database.execute(
            "UPDATE audit SET details = json_object(?, ?)", (hostile("audit", "key"), hostile("audit", "of"))
        )
    database.close()


def ids_of(home: Path, tenants: Tenants) -> Mapping[str, str]:
    """What stands in addresses: names are not usable any more."""
    with sqlite3.connect(home / "cloud.db") as database:

        def first(query: str) -> str:
            return str(database.execute(query).fetchone()[0])

        acme = tenants.ids["project"]
        ids = {
            name: first(f"SELECT id FROM {table} WHERE project_id = '{acme}' ORDER BY id DESC")
            for name, table in {
                "instance": "instance", "run": "run", "queued": "queued_launch", "network": "network",
                "group": "security_group", "acl": "acl", "balancer": "balancer", "volume": "volume",
                "dataset": "dataset", "port": "published_port",
            }.items()
        }  # fmt: skip
        host = first("SELECT id FROM host")
    database.close()
    return {**ids, "snapshot": "before", "lesson": "cloud", "host": host, "project": acme}


@pytest.mark.parametrize("language", ["en", "ja"])
def test_no_page_shows_text_of_a_row_as_markup(
    console: ConsoleServer, tenants: Tenants, language: str
) -> None:
    home = console.cloud.at.folder
    sessions = {who: console.session(tenants.keys[who]) for who in ("owner", "operator")}
    poisoned(home)
    ids, shown = ids_of(home, tenants), ""
    for page in PAGES:
        rule = RULES.get(page.name)
        if page.method != "GET" or page.stream or rule is None or page.name in ELSEWHERE:
            continue
        session = sessions["owner" if "owner" in rule.may else "operator"]
        target = (PREFIX + page.path).format(**ids) + rule.query
        got = console.get(target, session, cookie=f"tera_language={language}")
        if not got.header("content-type").startswith("text/html"):
            assert got.header("x-content-type-options") == "nosniff", target
            continue
        assert got.status in (200, 303, *rule.states), (target, got.words)
        assert not re.search("<b>'|'\"[a-z_]+[.][a-z_]+`", got.text), f"{target}: neither tags nor quotes"
        shown += got.text
    assert [column for column in COLUMNS if "{}.{}".format(*column) not in shown] == [], "no page shows these"
