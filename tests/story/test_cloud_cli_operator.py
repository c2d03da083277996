"""An operator uses the command line: lists and stops instances with a reason, suspends, backs up, restores."""

from pathlib import Path

import pytest
from tests.story.cloud import Cloud


@pytest.fixture(scope="module")
def red(cloud: Cloud) -> Cloud:
    """The owner of `red-lab`, with an instance `web`."""
    made = cloud.ok("org", "create", "red-lab", "--owner", "owner@red", "--json").json
    red = cloud.as_user(made["key"])
    red.ok("launch", "--name", "web", "--vcpus", "1", "--wait")
    return red


def test_operator_lists_and_stops_any_instance(cloud: Cloud, red: Cloud) -> None:
    listed = cloud.ok("ps", "--all").out
    assert listed.splitlines()[0].split()[:3] == ["ORGANISATION", "PROJECT", "NAME"]
    assert "red-lab" in listed
    assert [each["instance"]["name"] for each in cloud.ok("ps", "--org", "red-lab", "--json").json] == ["web"]
    assert "red-lab" in cloud.fails("ps", "--org", "red-labb").err
    assert "does not have the permission" in red.fails("ps", "--all").err
    assert "--reason" in cloud.fails("stop", "web", "--project", "red-lab:default").err
    cloud.ok("stop", "web", "--org", "red-lab", "--reason", "it attacks others")
    shown = red.ok("show", "web").out
    assert "stopped by the operator" in shown
    assert "it attacks others" in shown
    assert "it attacks others" in red.fails("start", "web").err
    assert "it attacks others" in red.ok("audit", "--json").out
    assert "it attacks others" in red.ok("events", "--instance", "web", "--json").out
    assert "it attacks others" in cloud.ok("ps", "--all", "--json").out
    cloud.ok("logs", "web", "--org", "red-lab", "--reason", "support")
    cloud.ok("start", "web", "--org", "red-lab", "--reason", "mended")
    assert red.ok("show", "web", "--json").json["state"] == "running"
    assert "organisation" in cloud.ok("show", "web", "--all").out


def test_operator_commands_need_a_reason(cloud: Cloud, red: Cloud) -> None:
    assert "Add `--reason TEXT`" in cloud.fails("stop", "web", "--org", "red-lab").err
    hint = cloud.fails("exec", "web", "--project", "red-lab:default", "--", "true").err
    assert "Add `--reason TEXT` to `tera stop`, `start`, `delete` or `logs`" in hint
    for reason in ("", " ", "two\nlines", "x" * 501):
        for words in (("org", "suspend", "red-lab"), ("stop", "web", "--org", "red-lab")):
            assert "`--reason` must be one line of text" in cloud.fails(*words, "--reason", reason).err
    assert red.ok("show", "web", "--json").json["state"] == "running"


def test_money_settings_as_json(cloud: Cloud, red: Cloud) -> None:
    there = ("--project", "red-lab:default", "--json")
    assert cloud.ok("budget", "cap", "300", *there).json == {"cap_micros": 300_000_000}
    assert cloud.ok("budget", "cap", "none", *there).json == {"cap_micros": None}
    red.ok("budget", "set", "500")
    assert red.ok("budget", "remove", "--json").json == {"micros": None}
    told = red.ok("buy", "limit", "owner@red", "10", "--json").json
    assert told == {"member": "owner@red", "micros": 10_000_000}
    red.ok("buy", "limit", "owner@red", "none")


def test_tenant_output_cannot_control_the_terminal(cloud: Cloud, red: Cloud) -> None:
    title = "\x1b]0;owned\x07"
    red.ok(
        "launch", "--name", "hostile", "--vcpus", "1", "--wait", "--label", f"k={title}", "--", "echo", title
    )
    assert title in red.ok("logs", "hostile").out, "its own log comes as it was written"
    for told in (
        cloud.ok("logs", "hostile", "--org", "red-lab", "--reason", "support").out,
        cloud.ok("show", "hostile", "--org", "red-lab").out,
        red.ok("label", "hostile").out,
    ):
        assert "owned" in told
        assert all(line.isprintable() for line in told.splitlines())
    red.ok("delete", "hostile", "--yes")


def test_an_organisation_is_suspended_resumed_and_renamed(cloud: Cloud, red: Cloud) -> None:
    cloud.ok("org", "suspend", "red-lab", "--reason", "unpaid")
    assert "unpaid" in cloud.ok("org", "show", "red-lab").out
    assert "unpaid" in red.fails("launch", "--name", "more", "--vcpus", "1").err
    assert "unpaid" in red.fails("key", "create", "more").err
    for _ in range(200):
        if red.ok("show", "web", "--json").json["state"] == "stopped":
            break
    assert red.ok("show", "web", "--json").json["state"] == "stopped"
    cloud.ok("org", "resume", "red-lab", "--reason", "paid")
    red.ok("start", "web")
    cloud.ok("org", "rename", "red-lab", "--to", "red", "--reason", "asked for")
    assert red.ok("whoami", "--json").json["organisation_name"] == "red"
    cloud.ok("org", "rename", "red", "--to", "red-lab", "--reason", "back")


def test_names_work_where_ids_do(cloud: Cloud, red: Cloud) -> None:
    cloud.ok("project", "create", "speech", "--org", "red-lab")
    assert "speech" in cloud.ok("project", "list", "--org", "red-lab").out
    cloud.ok("quota", "show", "--project", "speech")
    assert "owner@red" in cloud.ok("member", "list", "--org", "red-lab").out
    advice = cloud.ok("member", "add", "new@red", "--role", "viewer", "--org", "red-lab").err
    assert "--member new@red" in advice
    cloud.ok("key", "create", "laptop", "--member", "new@red")
    cloud.ok("key", "revoke", "laptop", "--yes")
    for words in (["member", "list"], ["project", "list"], ["audit"]):
        assert "`red-lab`" in cloud.fails(*words, "--org", "redlab").err


def test_announcement_is_shown_once_on_stderr(cloud: Cloud, red: Cloud) -> None:
    blue = cloud.as_user(cloud.ok("org", "create", "blue", "--owner", "me@blue", "--json").json["key"])
    cloud.ok("announce", "Maintenance on Sunday", "--until", "7d")
    cloud.ok("announce", "Only for red", "--org", "red-lab")
    first = red.ok("ps", "--json")
    assert "Maintenance on Sunday" in first.err
    assert "Only for red" in first.err
    assert "Announcement" not in first.out
    assert isinstance(first.json, list)
    assert "Announcement" not in red.ok("ps", "--json").err, "once"
    seen = blue.ok("whoami").err
    assert "Maintenance on Sunday" in seen
    assert "Only for red" not in seen
    assert "Announcement" not in cloud.ok("ps").err, "the operator wrote it"
    assert "in the past" in cloud.fails("announce", "Too late", "--until", "2020-01-01").err
    assert "Did you mean `list`?" in cloud.fails("announce", "lst").err, "a mistyped command was announced"
    ids = [each["id"] for each in cloud.ok("announce", "list", "--json").json]
    assert "red-lab" in cloud.ok("announce", "list").out
    for id in ids:
        cloud.ok("announce", "remove", id)
    assert "ann_x" in cloud.fails("announce", "remove", "ann_x").err
    assert "No announcements" in cloud.ok("announce", "list").err
    cloud.ok("org", "delete", "blue", "--reason", "test", "--yes")


BOOK = "- {from: 2026-01-01, currency: USD, vcpu: 0.01/hour, ram: 0.002/hour, disk: 1/month}\n"


def test_messages_for_tenants(cloud: Cloud, red: Cloud, tmp_path: Path) -> None:
    book = tmp_path / "prices.yaml"
    book.write_text(BOOK)
    cloud.ok("price", "set", str(book))
    assert "Costs" not in red.fails("launch", "--image", "nothing").err, "a refused launch costs nothing"
    assert "Costs" in red.ok("launch", "--name", "priced", "--vcpus", "1", "--wait").err
    told = red.ok("resize", "priced", "--vcpus", "2").err
    assert "`priced` has 2 vCPU" in told
    assert "and costs" in told
    slow = red.run("exec", "priced", "--seconds", "1", "--", "sleep", "100")
    assert slow.code == 124
    assert "Killed after 1 s" in slow.err
    wrong = red.fails("member", "add", "x y", "--role", "viewer")
    assert "without spaces" in wrong.err
    assert "regex" not in wrong.err
    assert "For owners" not in red.ok("audit", "--help").out
    red.ok("delete", "priced", "--yes")


def test_a_backup_is_shown_and_restored(cloud: Cloud, red: Cloud, tmp_path: Path) -> None:
    file = tmp_path / "backup"
    assert "not encrypted" in cloud.ok("backup", "create", str(file)).err
    shown = cloud.ok("backup", "show", str(file)).out
    assert "organisations  2" in shown
    assert "already" in cloud.fails("backup", "create", str(file)).err
    assert "make down" in cloud.fails("backup", "restore", str(file), "--replace", "--yes").err
    red.ok("launch", "--name", "later", "--vcpus", "1", "--wait")
    cloud.ok("down")
    assert "--replace" in cloud.fails("backup", "restore", str(file)).err
    cloud.ok("backup", "restore", str(file), "--replace", "--yes")
    cloud.ok("up")
    names = [each["name"] for each in red.ok("ps", "--json").json]
    assert "web" in names
    assert "later" not in names, "it was launched after the backup"
    file.write_bytes(file.read_bytes()[:-100])
    assert "damaged" in cloud.fails("backup", "show", str(file)).err


def test_an_organisation_is_deleted(cloud: Cloud, red: Cloud) -> None:
    refused = cloud.fails("org", "delete", "red-lab", "--reason", "over", "--yes")
    assert "--force" in refused.err
    cloud.ok("org", "delete", "red-lab", "--reason", "over", "--yes", "--force")
    assert "red-lab" not in cloud.ok("org", "list").out
    assert red.fails("ps").code == 1
    assert cloud.ok("ps", "--all", "--json").json == []
