"""Sites over the API: defined, checked, allowed to tenants, and used by a launch."""

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from tests.api.asking import SETTINGS, ApiServer

from teraflock.drivers.simulated.cloud import SimulatedCloud
from teraflock.drivers.simulated.trouble import Trouble

SKY = {
    "name": "sky",
    "kind": "simulated",
    "options": {"style": "cloud", "launch_seconds": "0", "boot_seconds": "0"},
}
LAUNCH = {"name": "far", "site": "sky", "type": "sim-1xv100"}


class Server(ApiServer):
    def __init__(self, home: Path, **changes: Any) -> None:
        super().__init__(home, replace(SETTINGS, **changes))
        self.owner = self.furnish()


@pytest.fixture
def server(tmp_path: Path) -> Any:
    server = Server(tmp_path)
    yield server
    server.close()


def added(server: Server) -> None:
    server.ok("POST", "/v1/sites", SKY)
    server.cloud.synchronise_sites()
    server.settle()


def test_a_site_is_added_used_and_removed(server: Server) -> None:
    names = [each["name"] for each in server.ok("GET", "/v1/sites")["items"]]
    assert names == ["simulated"]
    added(server)
    site = server.ok("GET", "/v1/sites/sky")
    assert (site["state"], site["rents"], site["defined_in"], site["simulated"]) == (
        "ready",
        True,
        "database",
        True,
    )
    assert "sim-1xv100" in {each["name"] for each in site["types"]}
    assert server.ok("POST", "/v1/sites/sky/check") == {
        "name": "sky", "ok": True, "problem": "", "hint": "", "hosts": 0, "machines": 0, "types": 5,
    }  # fmt: skip
    server.ok("PUT", "/v1/sites/sky/organisations/acme")
    made = server.ok("POST", "/v1/instances", LAUNCH, server.owner)["items"][0]
    server.settle()
    seen = server.ok("GET", f"/v1/instances/{made['id']}", key=server.owner)
    assert (seen["state"], seen["site"], seen["restart_policy"], seen["host"]) == (
        "running",
        "sky",
        "never",
        None,
    )
    assert seen["rental"] == {
        "type": "sim-1xv100", "region": "sim-east", "zone": "sim-east-a", "candidates": [], "candidate": 0,
    }  # fmt: skip
    assert (seen["ssh"]["user"], seen["ssh"]["port"]) == ("ubuntu", 22)
    hosts = server.ok("GET", "/v1/hosts?kind=rented")["items"]
    assert [(each["name"], each["kind"], each["cost_micros_per_hour"]) for each in hosts] == [
        (made["id"], "rented", 900_000)
    ]
    assert made["id"] not in {each["name"] for each in server.ok("GET", "/v1/hosts")["items"]}
    assert "still has instances" in server.refused("DELETE", "/v1/sites/sky").json["detail"]
    assert (
        "rented host"
        in server.refused("PATCH", f"/v1/hosts/{hosts[0]['id']}", {"state": "draining"}).json["detail"]
    )
    server.ok("DELETE", f"/v1/instances/{made['id']}", key=server.owner)
    server.settle()
    assert [each["state"] for each in server.ok("GET", "/v1/hosts?kind=rented")["items"]] == ["gone"]
    server.ok("DELETE", "/v1/sites/sky")
    server.cloud.synchronise_sites()
    assert server.refused("GET", "/v1/sites/sky").status == 404


def test_nobody_rents_where_the_operator_does_not_let_them(server: Server) -> None:
    """And is told the same as of a site that does not exist."""
    added(server)
    denied = server.refused("POST", "/v1/instances", LAUNCH, server.owner).json
    unknown = server.refused("POST", "/v1/instances", {**LAUNCH, "site": "nowhere"}, server.owner).json
    assert denied["code"] == unknown["code"] == "unknown_name"
    assert denied["hint"] == unknown["hint"]
    server.ok("PUT", "/v1/sites/sky/organisations/acme")
    server.ok("POST", "/v1/instances", LAUNCH, server.owner)
    server.ok("DELETE", "/v1/sites/sky/organisations/acme")
    again = server.refused("POST", "/v1/instances", {**LAUNCH, "name": "more"}, server.owner)
    assert again.code == "unknown_name"
    with server.cloud.database.read() as tx:
        acts = [row[0] for row in tx.all("SELECT action FROM audit WHERE action LIKE 'site.%' ORDER BY id")]
    assert acts == ["site.add", "site.allow", "site.deny"]


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"name": "sky", "kind": "nimbus"}, "nimbus"),
        ({"name": "sky", "kind": "_template"}, "_template"),
        ({"name": "sky", "kind": "joined"}, "cannot be added"),
        ({"name": "sky", "kind": "simulated", "options": {"stile": "cloud"}}, "stile"),
        ({"name": "simulated", "kind": "simulated"}, "already"),
    ],
)
def test_a_site_that_cannot_be_is_refused(server: Server, body: object, words: str) -> None:
    assert words in server.refused("POST", "/v1/sites", body).json["detail"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"type": ""}, "rents machines by type"),
        ({"type": "huge"}, "huge"),
        ({"region": "moon"}, "moon"),
        ({"site": ""}, "needs a site"),
        ({"site": "simulated"}, "does not rent machines by type"),
        ({"shape": {"vcpus": 2}}, "already sets GPUs"),
        ({"host": "simulated-0001"}, "`--host`"),
        ({"mode": "bid"}, "bid"),
        ({"max_price_micros_per_hour": 100}, "more than your limit"),
        ({"type": "", "site": "", "region": "east"}, "rented machines"),
    ],
)
def test_a_launch_that_cannot_be_is_refused_before_anything_is_written(
    server: Server, change: dict[str, Any], words: str
) -> None:
    added(server)
    server.ok("PUT", "/v1/sites/sky/organisations/acme")
    assert words in server.refused("POST", "/v1/instances", {**LAUNCH, **change}, server.owner).json["detail"]
    with server.cloud.database.read() as tx:
        assert tx.all("SELECT COUNT(*) FROM host WHERE kind = 'rented'") == [(0,)]


def test_a_rented_instance_cannot_be_resized_and_is_priced_by_the_book(server: Server) -> None:
    added(server)
    server.ok("PUT", "/v1/sites/sky/organisations/acme")
    book = "- {from: 2026-01-01, currency: USD, gpu: {V100: 3/hour}}\n"
    server.ok("PUT", "/v1/prices", {"text": book})
    quote = server.ok("POST", "/v1/quote", {"site": "sky", "type": "sim-1xv100"}, server.owner)
    assert quote["micros_per_hour"] == 3_000_000
    server.ok("POST", "/v1/instances", LAUNCH, server.owner)
    server.settle()
    refused = server.refused("POST", "/v1/instances/far/resize", {"shape": {"vcpus": 3}}, server.owner)
    assert "rented machine" in refused.json["detail"]


def test_what_a_machine_costs_us_is_told_to_no_tenant(server: Server) -> None:
    added(server)
    server.ok("PUT", "/v1/sites/sky/organisations/acme")
    server.ok("POST", "/v1/instances", LAUNCH, server.owner)
    server.settle()
    for target in ("/v1/events", "/v1/instances", "/v1/instances/far", "/v1/instances/far/events"):
        assert b"cost_micros" not in server.ask("GET", target, server.owner).body, target


def test_a_site_with_bad_credentials_is_shown_broken(server: Server) -> None:
    added(server)
    sky = server.cloud.engines.at("sky")
    assert isinstance(sky, SimulatedCloud)
    Trouble(sky.world).locked_out()
    server.cloud.loops.hosts.turn()
    site = server.ok("GET", "/v1/sites/sky")
    assert site["state"] == "broken"
    assert "credentials" in site["problem"]
    check = server.ok("POST", "/v1/sites/sky/check")
    assert (check["ok"], "credentials" in check["problem"]) == (False, True)


def test_a_launch_moves_to_the_next_alternative_at_another_site(server: Server) -> None:
    added(server)
    server.ok("POST", "/v1/sites", {**SKY, "name": "second"})
    server.cloud.synchronise_sites()
    server.settle()
    sky = server.cloud.engines.at("sky")
    assert isinstance(sky, SimulatedCloud)
    Trouble(sky.world).sold_out("sim-east", "sim-west")
    for site in ("sky", "second"):
        server.ok("PUT", f"/v1/sites/{site}/organisations/acme")
    other = {"site": "second", "type": "sim-8xa100", "max_price_micros_per_hour": 15_000_000}
    unknown = {"provider": "nimbus", "type": "x"}
    launch = {**LAUNCH, "region": "sim-west", "alternatives": [unknown, other]}
    server.refused("POST", "/v1/instances", {**LAUNCH, "alternatives": [{}]}, server.owner)
    made = server.ok("POST", "/v1/instances", launch, server.owner)["items"][0]
    assert (made["site"], made["rental"]["candidate"]) == ("sky", 0)
    server.settle()
    seen = server.ok("GET", f"/v1/instances/{made['id']}", key=server.owner)
    assert (seen["state"], seen["site"], seen["shape"]["gpus"]) == ("running", "second", 8)
    assert seen["rental"]["candidate"] == 1
    assert [(each["site"], each["type"], each["region"]) for each in seen["rental"]["candidates"]] == [
        ("sky", "sim-1xv100", "sim-west"),
        ("second", "sim-8xa100", "sim-east"),
    ]
    events = server.ok("GET", "/v1/events?limit=100", key=server.owner)["items"]
    (again,) = [each for each in events if each["kind"] == "instance.rented_again"]
    assert (again["details"]["site"], again["details"]["type"]) == ("second", "sim-8xa100")
    assert again["details"]["reason"]
    server.ok("DELETE", f"/v1/instances/{made['id']}", key=server.owner)
    server.settle()
    assert list(sky.sightings()) == []


def test_sites_come_from_the_settings_too_and_a_broken_one_of_the_database_stops_nothing(
    tmp_path: Path,
) -> None:
    server = Server(tmp_path, sites={"clouds": {"kind": "simulated", "style": "cloud", "open": "true"}})
    server.ok("POST", "/v1/sites", {**SKY, "options": {"style": "cloud", "types": "nonsense"}})
    server.close()
    again = ApiServer(
        tmp_path, replace(SETTINGS, sites={"clouds": {"kind": "simulated", "style": "cloud", "open": "true"}})
    )
    try:
        found = {each["name"]: each for each in again.ask("GET", "/v1/sites", server.operator).json["items"]}
        assert (found["clouds"]["defined_in"], found["clouds"]["open"]) == ("settings", True)
        assert "nonsense" in found["sky"]["problem"]
        assert found["sky"]["state"] == "broken"
        made = again.ask("POST", "/v1/instances", server.owner, body={**LAUNCH, "site": "clouds"})
        assert made.status == 202
        denied = again.ask("DELETE", "/v1/sites/clouds", server.operator)
        assert "settings" in denied.json["detail"]
    finally:
        again.close()
