"""Operators and tenants see what hosts, cards and instances use."""

from collections.abc import Iterator

import pytest
from tests.story.cloud import Cloud, running


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cloud]:
    with running(tmp_path_factory.mktemp("telemetry") / "home") as cloud:
        yield cloud


def test_operators_see_hosts_and_tenants_see_their_instances(cloud: Cloud) -> None:
    hosts = cloud.ok("top", "--json").json
    assert hosts[0]["simulated"] is True
    assert hosts[0]["cards"][0]["utilisation_percent"] == 0
    shown = cloud.ok("top", "--once").out
    assert "SIMULATED" in shown
    assert "HOST" in shown
    made = cloud.ok("org", "create", "blue-lab", "--owner", "owner@blue", "--json").json
    blue = cloud.as_user(made["key"])
    assert blue.ok("top", "--once").out == "No running instances\n"
    blue.ok("launch", "--name", "train", "--gpu", "V100", "--wait")
    assert [each["name"] for each in blue.ok("top", "--json").json] == ["train"]
    assert "train" in blue.ok("top", "--once").out
    assert cloud.ok("top", "--json", "--project", "blue-lab:default").json[0]["name"] == "train"
    assert "SECONDS" in cloud.ok("top", "--help").out
    assert "is not from 1 to 3600" in cloud.fails("top", "--seconds", "0").err
    assert "GPU utilisation, last hour" in cloud.ok("host", "show", hosts[0]["host"]).out
