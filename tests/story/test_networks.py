"""A tenant makes networks, subnets and peerings with `tera`, with the simulated engine."""

import json
from pathlib import Path

import pytest
from tests.story.cloud import Cloud, told

SMALL = ("--vcpus", "1", "--ram", "1", "--wait")


def test_networks_and_subnets_are_made_used_and_deleted(cloud: Cloud) -> None:
    assert "No networks yet" in cloud.ok("network", "list").err
    made = cloud.ok("network", "create", "backend").err
    assert made.startswith("Created network `backend` with 10.128.0.0/20")
    assert (
        "with 10.128.4.0/24"
        in cloud.ok("subnet", "create", "db", "--network", "backend", "--cidr", "10.128.4.0/24").err
    )
    cloud.ok(
        "launch",
        "--name",
        "web",
        "--network",
        "default",
        "--network",
        "backend",
        "--subnet",
        "backend/db",
        *SMALL,
    )
    cloud.ok("launch", "--name", "db", "--network", "backend", "--address", "10.128.4.20", *SMALL)
    assert [each["address"] for each in told(cloud, "show", "web")["interfaces"]] == [
        "10.128.16.16",
        "10.128.4.0",
    ]
    assert "10.128.16.16 (network `default`), 10.128.4.0 (network `backend`)" in cloud.ok("show", "web").out
    shown = cloud.ok("network", "show", "backend", columns=60).out
    assert "backend  10.128.0.0/20, gateway 10.128.0.1\nIPv6     fd3e:9a51:c870::/64\n" in shown
    assert max(map(len, shown.splitlines())) <= 60
    assert cloud.run("network", "check", "--from", "web", "--to", "db", "--port", "80").code == 0
    assert told(cloud, "subnet", "show", "db", "--network", "backend")["instances"] == ["db", "web"]
    assert "10.128.4.0/24" in cloud.ok("subnet", "list").out
    assert "is in use by `db`, `web`" in cloud.fails("network", "delete", "backend", "--yes").err
    assert "is in use by" in cloud.fails("subnet", "delete", "db", "--network", "backend", "--yes").err
    cloud.ok("delete", "web", "db", "--yes", "--wait")
    cloud.ok("acl", "create", "border")
    assert (
        "guards the subnet `backend/db`"
        in cloud.ok("acl", "attach", "border", "--network", "backend", "--subnet", "db").err
    )
    assert "backend/db" in cloud.ok("acl", "list").out
    refused = cloud.fails("subnet", "delete", "db", "--network", "backend", "--yes")
    assert refused.hint == "Detach it first: `tera acl detach border --network backend --subnet db`"
    cloud.ok(*refused.hint.partition("`tera ")[2].rstrip("`").split())
    cloud.ok("subnet", "delete", "db", "--network", "backend", "--yes")
    cloud.ok("network", "delete", "backend", "--yes")
    assert [each["name"] for each in told(cloud, "network", "list")] == ["default"]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("subnet", "create", "x", "--cidr", "10.128.16.1/24"), "`10.128.16.1/24` has host bits set"),
        (("subnet", "create", "x"), "A subnet needs its addresses or its size"),
        (("subnet", "create", "x", "--prefix", "-1"), "prefix"),
        (("subnet", "create", "default", "--prefix", "24"), "Every network already has a subnet `default`"),
        (("subnet", "create", "x", "--network", "nope", "--prefix", "24"), "There is no network `nope`"),
        (("network", "create", "Bad Name"), "is not a valid name for a network"),
        (("network", "show", "nope"), "There is no network `nope`"),
        (("network", "peer", "default", "--with", "/x"), "`/x` is not a network"),
        (("network", "peer", "default", "--with", "a/b/c"), "`a/b/c` is not a network"),
        (("network", "peer", "default", "--with", "nobody/default"), "There is no such project"),
        (("network", "peer", "default", "--with", "default"), "cannot be peered with itself"),
        (("launch", "--network", "nope"), "nope"),
        (("launch", "--address", "1.2.3"), "`1.2.3` is not an IPv4 address"),
        (("launch", "--network", "\x1b[31mred"), "network"),
    ],
)
def test_bad_words_get_one_sentence(cloud: Cloud, words: tuple[str, ...], sentence: str) -> None:
    failed = cloud.fails(*words)
    assert sentence in failed.err
    assert "Traceback" not in failed.err
    assert "\x1b[31m" not in failed.err


def test_two_organisations_peer_their_networks(cloud: Cloud, tmp_path: Path) -> None:
    made = told(cloud, "org", "create", "blue", "--owner", "me@blue")
    blue = Cloud(tmp_path / "home")
    server = json.loads((cloud.home / "connection.json").read_text())["server"]
    blue.more |= {"TERA_SERVER": server, "TERA_KEY": made["key"]}
    red_id = told(cloud, "project", "list")[0]["id"]
    blue_id = told(blue, "project", "list")[0]["id"]
    cloud.ok("launch", "--name", "near", *SMALL)
    blue.ok("launch", "--name", "far", *SMALL)
    far = told(blue, "show", "far")["private_address"]
    asked = cloud.ok("network", "peer", "default", "--with", f"{blue_id}/default")
    assert asked.err.startswith("Requested.")
    offered = blue.ok("network", "show", "default")
    assert "offered" in offered.out
    accept = f"tera network peer default --with {red_id}/default"
    assert accept in offered.err
    assert cloud.run("network", "check", "--from", "near", "--to", far, "--port", "22").code == 1
    assert "are peered" in blue.ok(*accept.split()[1:]).err
    passes = cloud.ok("network", "check", "--from", "near", "--to", far, "--port", "22")
    assert passes.out.splitlines()[0] == f"tcp 22 from `near` to `{far}` passes"
    assert "into" not in passes.out.partition("\n")[2], "the rules of others are not shown"
    cloud.ok("network", "unpeer", "default", "--with", f"{blue_id}/default")
    assert told(blue, "network", "show", "default")["peerings"] == []
    assert cloud.run("network", "check", "--from", "near", "--to", far, "--port", "22").code == 1
