"""A tenant balances instances with `tera lb` and takes addresses with `tera address`, with the simulated engine."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.story.cloud import Cloud, running
from tests.story.test_security_groups_engine import eventually

SMALL = ("--vcpus", "1", "--ram", "1", "--wait")


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cloud]:
    with running(tmp_path_factory.mktemp("cloud") / "home", TERA_ADDRESS_POOL="203.0.113.16/30") as cloud:
        cloud.ok("launch", "--name", "w1", *SMALL)
        cloud.ok("launch", "--name", "w2", "--label", "app=web", *SMALL)
        yield cloud


def test_a_balancer_is_made_shown_changed_and_deleted(cloud: Cloud, tmp_path: Path) -> None:
    assert "No balancers yet" in cloud.ok("lb", "list").err
    made = cloud.ok("lb", "create", "web", "--port", "80", "--to", "w1", "--to", "label=app=web", "--publish")
    assert "(web.lb.default.internal) leads to: w1, w2" in made.out
    assert ":30000 leads to it from outside" in made.out

    def is_running() -> None:
        shown = cloud.ok("lb", "show", "web", columns=60).out
        assert "running" in shown
        assert shown.count(" up ") == 2
        assert max(map(len, shown.splitlines())) <= 60

    eventually(is_running)
    assert "web" in cloud.ok("lb", "list", columns=60).out
    cloud.ok("lb", "remove", "web", "w1")
    assert [each["instance"] for each in cloud.ok("lb", "show", "web", "--json").json["backends"]] == ["w2"]
    assert "is not a named backend" in cloud.fails("lb", "remove", "web", "w2").err
    assert "leads to: w1, w2" in cloud.ok("lb", "add", "web", "w1").err
    (tmp_path / "pem").write_text("nothing")
    for words, code, sentence in (
        (("--port", "x", "--to", "w1"), 2, "`x` is not a port"),
        (("--port", "80"), 2, "A balancer needs backends"),
        (("--port", "80", "--to", "w9"), 1, "There is no instance `w9`"),
        (
            ("--port", "80", "--to", "w1", "--certificate", tmp_path / "pem"),
            2,
            "TLS needs a certificate and its key",
        ),
        (("--port", "80", "--to", "w1", "--certificate", tmp_path / "none"), 2, "Could not read"),
        (("--port", "80", "--to", "label=a=b", "--to", "label=c=d"), 2, "A balancer has one label"),
    ):
        done = cloud.fails("lb", "create", "odd", *words)
        assert (done.code, sentence in done.err) == (code, True), done.err
    cloud.ok("lb", "delete", "web", "--yes")

    def is_gone() -> None:
        assert cloud.ok("lb", "list", "--json").json == []

    eventually(is_gone)


def test_an_address_is_taken_attached_and_released(cloud: Cloud) -> None:
    assert cloud.ok("address", "create").out.strip() == "203.0.113.16"
    assert "203.0.113.16 leads to instance w1" in cloud.ok("address", "attach", "203.0.113.16", "w1").err
    assert "instance w1" in cloud.ok("address", "list").out
    assert "203.0.113.16 leads to nothing" in cloud.ok("address", "detach", "203.0.113.16").err
    assert "addresses" in cloud.ok("quota", "show").out
    assert "There is no public address" in cloud.fails("address", "release", "203.0.113.99", "--yes").err
    assert "Released 203.0.113.16" in cloud.ok("address", "release", "203.0.113.16", "--yes").err
    assert cloud.ok("bill", "verify").code == 0
