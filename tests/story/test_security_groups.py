"""A tenant opens and closes instances with `tera sg` and asks `tera network` what passes, with the simulated engine."""

import xml.etree.ElementTree as ET

import pytest
from tests.story.cloud import Cloud, told

SMALL = ("--vcpus", "1", "--ram", "1", "--wait")


@pytest.fixture(scope="module")
def cloud(cloud: Cloud) -> Cloud:
    cloud.ok("launch", "--name", "web", *SMALL)
    cloud.ok("launch", "--name", "db", *SMALL)
    return cloud


def test_groups_are_made_used_and_deleted(cloud: Cloud) -> None:
    assert "default" in cloud.ok("sg", "list").out
    assert cloud.ok("sg", "create", "front").err.startswith("Created security group `front`")
    cloud.ok("sg", "allow", "front", "--in", "--protocol", "tcp", "--port", "80-90", "--from", "0.0.0.0/0")
    again = cloud.ok(
        "sg", "allow", "front", "--in", "--protocol", "tcp", "--port", "80-90", "--from", "0.0.0.0/0"
    )
    assert "`front` allows: in tcp 80-90 from 0.0.0.0/0" in again.err
    shown = cloud.ok("sg", "show", "front").out
    assert "front  no instances" in shown
    assert "80-90" in shown
    cloud.ok("sg", "attach", "front", "web")
    assert told(cloud, "sg", "show", "front")["instances"] == ["web"]
    assert [each["name"] for each in told(cloud, "sg", "list", "--instance", "web")] == ["default", "front"]
    assert "is in use by `web`" in cloud.fails("sg", "delete", "front", "--yes").err
    cloud.ok("sg", "detach", "front", "web")
    cloud.ok("sg", "revoke", "front", "--in", "--protocol", "tcp", "--port", "80-90", "--from", "0.0.0.0/0")
    (left,) = told(cloud, "sg", "show", "front")["rules"]
    cloud.ok("sg", "revoke", "front", "--rule", left["id"])
    cloud.ok("sg", "delete", "front", "--yes")
    assert [each["name"] for each in told(cloud, "sg", "list")] == ["default"]


def test_an_instance_is_launched_into_groups(cloud: Cloud) -> None:
    cloud.ok("sg", "create", "quiet")
    cloud.ok("launch", "--name", "hermit", "--security-group", "quiet", *SMALL)
    assert [each["name"] for each in told(cloud, "sg", "list", "--instance", "hermit")] == ["quiet"]
    stopped = cloud.run("network", "check", "--from", "web", "--to", "hermit", "--port", "22")
    assert (stopped.code, stopped.out.splitlines()[0]) == (
        1,
        "No rule of `quiet` lets tcp 22 into `hermit` from `web`",
    )
    assert stopped.hint.startswith(
        "Allow it with `tera sg allow quiet --in --protocol tcp --port 22 --from 10."
    )
    missing = cloud.fails("launch", "--name", "x", "--security-group", "quite", *SMALL)
    assert "There is no security group `quite`" in missing.err
    assert "`quiet`" in missing.hint
    cloud.ok("delete", "hermit", "--yes")
    cloud.ok("sg", "delete", "quiet", "--yes")


def test_a_check_names_the_rules_that_decide(cloud: Cloud) -> None:
    passes = cloud.ok("network", "check", "--from", "internet", "--to", "web", "--port", "22")
    assert passes.out.splitlines() == [
        "tcp 22 from `internet` to `web` passes",
        "  into web: `default` allows in tcp 22 from 0.0.0.0/0",
    ]
    between = cloud.ok("network", "check", "--from", "web", "--to", "db", "--protocol", "icmp")
    assert between.out.splitlines() == [
        "icmp from `web` to `db` passes",
        "  out of web: `default` allows out any to 0.0.0.0/0",
        "  into db: `default` allows in any from sg:default",
    ]
    closed = cloud.run("network", "check", "--from", "web", "--to", "169.254.169.254", "--port", "80")
    assert (closed.code, closed.out.splitlines()[0]) == (
        1,
        "Hosts do not let instances into the network of 169.254.169.254",
    )
    outside = cloud.run("network", "check", "--from", "web", "--to", "2001:db8::1", "--port", "80")
    assert "IPv6 stays inside the networks of projects, and 2001:db8::1 is outside" in outside.out
    foreign = cloud.run("network", "check", "--from", "web", "--to", "10.200.0.9", "--port", "80")
    assert "have no common network" in foreign.out
    assert (
        told(cloud, "network", "check", "--from", "web", "--to", "internet", "--port", "443")["passes"]
        is True
    )


def test_the_graph_is_a_table_json_and_a_picture(cloud: Cloud) -> None:
    rows = [line.split() for line in cloud.ok("network", "graph").out.splitlines()]
    assert ["web", "db", "everything"] in rows
    assert ["internet", "web", "tcp", "22"] in rows
    assert told(cloud, "network", "graph")["ends"] == ["internet", "db", "web"]
    picture = ET.fromstring(cloud.ok("network", "graph", "--svg").out)
    texts = {each.text for each in picture.iter("{http://www.w3.org/2000/svg}text")}
    assert {"internet", "web", "db", "tcp 22"} <= texts
    assert "everything" not in texts, "only other lines have labels"
    assert "web" in cloud.ok("network", "graph", columns=60).out


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("sg", "allow", "default", "--in", "--port", "80"), "A rule needs `--from`"),
        (("sg", "allow", "default", "--port", "80"), "A rule needs a direction"),
        (("sg", "allow", "default", "--in", "--to", "0.0.0.0/0"), "A rule with `--in` takes `--from`"),
        (
            ("sg", "allow", "default", "--in", "--protocol", "tcp", "--port", "70000", "--from", "0.0.0.0/0"),
            "Port `70000` is out of range",
        ),
        (
            ("sg", "allow", "default", "--in", "--protocol", "tcp", "--port", "80", "--from", "10.0.0.1/8"),
            "`10.0.0.1/8` has host bits set",
        ),
        (("sg", "allow", "default", "--in", "--from", "sg:nobody"), "Unknown security group `nobody`"),
        (("sg", "allow", "default", "--in", "--from", "sg:"), "`sg:` lacks the name of a group"),
        (("sg", "allow", "default", "--in", "--out", "--from", "0.0.0.0/0"), "A rule has one direction"),
        (
            ("sg", "allow", "default", "--in", "--port", "80", "--from", "0.0.0.0/0"),
            "Protocol `any` has no ports",
        ),
        (("network", "check", "--from", "web", "--to", "web", "--port", "1"), "Both ends are the same"),
        (("network", "check", "--from", "web", "--to", "db"), "A TCP or UDP connection needs a port"),
        (("network", "check", "--from", "web", "--to", "db", "--port", "1-2"), "one port, not a range"),
        (
            ("network", "check", "--from", "internet", "--to", "8.8.8.8", "--port", "1"),
            "Neither end is an instance",
        ),
        (("sg", "create", "Web!"), "`Web!`"),
        (("sg", "create", "default"), "A security group `default` already exists"),
    ],
)
def test_bad_input_gets_one_sentence_and_changes_nothing(
    cloud: Cloud, words: tuple[str, ...], sentence: str
) -> None:
    before = told(cloud, "sg", "list")
    done = cloud.fails(*words)
    assert sentence in done.err.splitlines()[0], done.err
    assert done.hint
    assert told(cloud, "sg", "list") == before


def test_unknown_names_are_not_found(cloud: Cloud) -> None:
    assert "There is no security group `wbe`" in cloud.fails("sg", "show", "wbe").err
    assert "There is no instance `ghost`" in cloud.fails("sg", "attach", "default", "ghost").err
    rule = ("--in", "--protocol", "tcp", "--port", "9", "--from", "0.0.0.0/0")
    assert "has no such rule" in cloud.fails("sg", "revoke", "default", *rule).err
    ghost = cloud.fails("network", "check", "--from", "ghost", "--to", "web", "--port", "22")
    assert "There is no instance `ghost`" in ghost.err


def test_a_port_is_published_shown_and_closed(cloud: Cloud) -> None:
    assert "No published ports yet" in cloud.ok("publish").err
    done = cloud.ok("publish", "web", "8080")
    assert done.out.endswith(":30000 leads to port 8080 of web\n")
    assert "note: No rule of `default` lets tcp 8080 into `web` from the internet" in done.err
    assert "--in --protocol tcp --port 8080 --from 0.0.0.0/0" in done.err
    cloud.ok("sg", "allow", "default", "--in", "--protocol", "tcp", "--port", "8080", "--from", "0.0.0.0/0")
    assert cloud.ok("publish", "web", "8080", "--port", "30000").err.count("note") == 0
    cloud.ok("network", "check", "--from", "internet", "--to", "web", "--port", "8080")
    shown = told(cloud, "show", "web")
    assert [each["port"] for each in shown["published_ports"]] == [30_000]
    assert shown["security_groups"] == ["default"]
    assert "8080 at " in cloud.ok("show", "web", columns=60).out
    assert told(cloud, "quota", "show")["ports"] == 1
    for words, sentence in (
        (("publish", "web", "70000"), "Port `70000` is out of range"),
        (("publish", "web", "http"), "`http` is not a port"),
        (("publish", "db", "80", "--port", "30000"), "Port 30000 of the host is taken"),
        (("publish", "db", "80", "--port", "80"), "Port `80` of the host cannot be published"),
        (("publish", "ghost", "80"), "There is no instance `ghost`"),
        (("unpublish", "db", "80"), "Port 80 of `db` is not published"),
    ):
        failed = cloud.fails(*words)
        assert sentence in failed.err
        assert failed.hint
    cloud.ok("unpublish", "web", "8080")
    assert told(cloud, "publish") == []
    cloud.ok("sg", "revoke", "default", "--in", "--protocol", "tcp", "--port", "8080", "--from", "0.0.0.0/0")


def test_an_acl_is_made_attached_and_removed(cloud: Cloud) -> None:
    assert "No ACLs yet" in cloud.ok("acl", "list").err
    cloud.ok("acl", "create", "border")
    cloud.ok(
        "acl", "deny", "border", "10", "--in", "--protocol", "tcp", "--port", "22", "--from", "192.0.2.0/24"
    )
    cloud.ok("acl", "allow", "border", "20", "--in", "--from", "0.0.0.0/0")
    assert "one direction only" in cloud.ok("acl", "attach", "border").err
    reply = cloud.run("network", "check", "--from", "internet", "--to", "web", "--port", "22")
    assert (reply.code, reply.out.splitlines()[0]) == (
        1,
        "An ACL drops replies to tcp 22 between the internet and `web`",
    )
    cloud.ok("acl", "allow", "border", "20", "--out", "--to", "0.0.0.0/0")
    cloud.ok("network", "check", "--from", "internet", "--to", "web", "--port", "22")
    denied = cloud.run("network", "check", "--from", "192.0.2.9", "--to", "web", "--port", "22")
    assert "An ACL drops tcp 22 between 192.0.2.9 and `web`" in denied.out
    cloud.ok("network", "check", "--from", "web", "--to", "db", "--port", "22")
    for words, sentence in (
        (("acl", "deny", "border", "10", "--in", "--from", "10.0.0.0/8"), "has a rule 10 for `in` already"),
        (
            ("acl", "deny", "border", "0", "--in", "--from", "10.0.0.0/8"),
            "`0` cannot be the number of a rule",
        ),
        (
            ("acl", "deny", "border", "x", "--in", "--from", "10.0.0.0/8"),
            "`x` cannot be the number of a rule",
        ),
        (("acl", "deny", "border", "9", "--in", "--from", "sg:default"), "cannot name a security group"),
        (("acl", "delete", "border", "--yes"), "is in use"),
        (("acl", "remove", "border", "11", "--in"), "has no rule 11"),
        (("acl", "show", "boarder"), "There is no ACL `boarder`"),
    ):
        failed = cloud.fails(*words)
        assert sentence in failed.err
        assert failed.hint
    assert "deny" in cloud.ok("acl", "show", "border", columns=60).out
    cloud.ok("acl", "remove", "border", "10", "--in")
    cloud.ok("acl", "detach", "border")
    cloud.ok("acl", "delete", "border", "--yes")
