"""Accounts at clouds over the API: added, checked, shared, limited, swept, removed. Credentials stay secret."""

import sqlite3
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from tests.api.asking import SETTINGS, ApiServer, Asking
from tests.fakes.base import KEY, FakeCloud
from tests.fakes.gce import FakeGce
from tests.fakes.guest import FakeLink
from tests.fakes.lambda_cloud import FakeLambda
from tests.fakes.server import FakeServer
from tests.fakes.tencent import FakeTencent

from teraflock.app.settings import Place
from teraflock.app.wiring import Cloud
from teraflock.base.clock import FixedClock
from teraflock.drivers.clouds import pacing
from teraflock.drivers.clouds.engine import CloudSite
from teraflock.drivers.clouds.lambda_cloud import LambdaCloud
from teraflock.drivers.clouds.model import Pace
from teraflock.instance.driver import Handle
from teraflock.instance.lease.store import next_due_in_all_projects
from teraflock.instance.model import InstanceId

LAUNCH = {"name": "far", "site": "acct", "type": "gpu_1x_a10"}


CLOCK = FixedClock(datetime(2026, 11, 15, 12, tzinfo=UTC))


class Server(ApiServer):
    def __init__(self, home: Path) -> None:
        self.cloud = Cloud(Place(home), SETTINGS, clock=CLOCK)
        Asking.__init__(self, self.cloud)
        self.owner = self.furnish()

    def settle(self) -> None:
        loops = self.cloud.loops
        loops.beat()
        loops.hosts.turn()
        for _ in range(100):
            loops.beat()
            loops.images.turn()
            for instance in loops.instances.lease():
                loops.instances.advance(instance)
            with self.cloud.database.read() as tx:
                if next_due_in_all_projects(tx) is None:
                    return
            CLOCK.move(timedelta(seconds=1))
        raise AssertionError("the loops do not settle")


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeLambda:
    monkeypatch.setattr(LambdaCloud, "pace", Pace(call_seconds=0, launch_seconds=0))
    monkeypatch.setattr(pacing, "_PACERS", {})
    return FakeLambda(CLOCK, boot_seconds=0.0)


@pytest.fixture
def url(fake: FakeLambda) -> Iterator[str]:
    with FakeServer(fake) as served:
        yield served.url


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    server = Server(tmp_path)
    yield server
    server.close()


def added(server: Server, url: str, fake: FakeLambda, **more: Any) -> Any:
    body = {"name": "acct", "provider": "lambda", "secret": KEY, "options": {"base_url": url}, **more}
    made = server.ok("POST", "/v1/accounts", body)
    server.cloud.synchronise_sites()
    driver = server.cloud.engines.at("acct")
    assert isinstance(driver, CloudSite)
    driver._guests._link = FakeLink(fake)
    server.settle()
    return made


def shared(server: Server, **body: Any) -> None:
    server.ok("PUT", "/v1/accounts/acct/projects/acme:default", body)


def test_an_account_is_added_checked_shared_used_and_removed(
    server: Server, url: str, fake: FakeLambda
) -> None:
    made = added(server, url, fake, limit_micros=100_000_000)
    assert (made["provider"], made["state"], made["projects"], made["secret_from"]) == (
        "lambda",
        "unknown",
        [],
        "",
    )
    check = server.ok("POST", "/v1/accounts/acct/check")
    assert check["ok"]
    assert "2 machine types" in check["found"]
    assert server.ok("GET", "/v1/sites/acct")["kind"] == "lambda"
    assert "Unknown site" in server.refused("POST", "/v1/instances", LAUNCH, server.owner).json["detail"]
    shared(server)
    made = server.ok("POST", "/v1/instances", LAUNCH, server.owner)["items"][0]
    server.settle()
    seen = server.ok("GET", f"/v1/instances/{made['id']}", key=server.owner)
    assert (seen["state"], seen["ssh"]["user"], seen["ssh"]["port"]) == ("running", "ubuntu", 22)
    assert seen["ssh"]["host_key"].startswith("ssh-ed25519 ")
    account = server.ok("GET", "/v1/accounts/acct")
    assert (account["instances"], account["per_hour_micros"]) == (1, 750_000)
    assert "still has" in server.refused("DELETE", "/v1/accounts/acct").json["detail"]
    assert "still has" in server.refused("DELETE", "/v1/accounts/acct?force=true").json["detail"]
    assert "belongs to an account" in server.refused("DELETE", "/v1/sites/acct").json["detail"]
    server.ok("DELETE", f"/v1/instances/{made['id']}", key=server.owner)
    server.cloud.loops.hosts.turn()
    server.settle()
    assert fake.alive == []
    server.ok("DELETE", "/v1/accounts/acct")
    assert server.ok("GET", "/v1/accounts")["items"] == []
    server.cloud.synchronise_sites()
    assert "acct" not in [each["name"] for each in server.ok("GET", "/v1/sites")["items"]]


def test_a_wrong_key_is_explained_and_can_be_replaced(server: Server, url: str, fake: FakeLambda) -> None:
    body = {"name": "acct", "provider": "lambda", "secret": "wrong", "options": {"base_url": url}}
    server.ok("POST", "/v1/accounts", body)
    check = server.ok("POST", "/v1/accounts/acct/check")
    assert not check["ok"]
    assert "API key was invalid" in check["problem"]
    assert "tera account key" in check["hint"]
    server.cloud.synchronise_sites()
    refused = server.refused("DELETE", "/v1/accounts/acct").json
    assert "could not be asked" in refused["detail"]
    server.ok("PUT", "/v1/accounts/acct/key", {"secret": KEY})
    assert server.ok("POST", "/v1/accounts/acct/check")["ok"]
    server.cloud.synchronise_sites()
    assert server.ok("POST", "/v1/sites/acct/check")["ok"], "the site was opened again with the new key"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"secret": None}, "needs its credentials once"),
        ({"secret_from": "env:X"}, "needs its credentials once"),
        ({"secret": None, "secret_from": "plain"}, "referred to as"),
        ({"provider": "lambdda"}, "Unknown provider"),
        ({"name": "simulated"}, "already"),
        ({"options": {"base_url": "http://example.com"}}, "without encryption"),
        ({"options": {"base_url": "https://u:p@example.com"}}, "not a base URL"),
        ({"options": {"colour": "red"}}, "Unknown option"),
    ],
)
def test_what_cannot_work_is_refused(server: Server, change: dict[str, Any], words: str) -> None:
    body = {"name": "acct", "provider": "lambda", "secret": KEY, **change}
    assert words in server.refused("POST", "/v1/accounts", body).json["detail"]
    assert server.ok("GET", "/v1/accounts")["items"] == []


def test_limits_refuse_launches_and_end_machines(server: Server, url: str, fake: FakeLambda) -> None:
    added(server, url, fake, limit_micros=700_000)
    shared(server)
    refused = server.refused("POST", "/v1/instances", LAUNCH, server.owner).json
    assert (refused["code"], "0.70 USD per month" in refused["detail"]) == ("budget_reached", True)
    server.ok("PUT", "/v1/accounts/acct/limit", {"limit_micros": 800_000})
    shared(server, limit_micros=700_000)
    assert "for this project" in server.refused("POST", "/v1/instances", LAUNCH, server.owner).json["detail"]
    shared(server, limit_micros=800_000)
    made = server.ok("POST", "/v1/instances", LAUNCH, server.owner)["items"][0]
    server.settle()
    second = server.refused("POST", "/v1/instances", {**LAUNCH, "name": "two"}, server.owner).json
    assert second["code"] == "budget_reached"
    host = _started_earlier(server, timedelta(hours=2))
    from teraflock.reconcile.accounts import AccountLoop

    nouns = server.cloud.services.nouns
    AccountLoop(server.cloud.database, server.cloud.clock, nouns.instances).turn()
    server.settle()
    assert fake.alive == [], host
    assert server.ok("GET", f"/v1/instances/{made['id']}", key=server.owner)["state"] == "gone"


def _started_earlier(server: Server, by: timedelta) -> str:
    """As if the machine had run for longer."""

    def work(tx: Any) -> str:
        us = by // timedelta(microseconds=1)
        tx.run("UPDATE host_cost SET from_us = from_us - :us", us=us)
        return str(tx.one("SELECT host_id FROM host_cost")[0])

    return server.cloud.database.write(work)


def test_orphans_are_shown_with_their_cost_and_swept(server: Server, url: str, fake: FakeLambda) -> None:
    added(server, url, fake)
    shared(server)
    server.ok("POST", "/v1/instances", LAUNCH, server.owner)
    server.settle()
    server.cloud.database.write(lambda tx: tx.run("DELETE FROM instance"))
    (orphan,) = server.ok("GET", "/v1/accounts/acct/orphans")["items"]
    assert (orphan["kind"], orphan["micros_per_hour"], orphan["currency"]) == ("machine", 750_000, "USD")
    server.cloud.loops.drift.turn()
    assert len(fake.alive) == 1, "no loop deletes what another database may own"
    (swept,) = server.ok("POST", "/v1/accounts/acct/sweep")["items"]
    assert swept["remote_id"] == orphan["remote_id"]
    assert fake.alive == []
    kinds = [each["kind"] for each in server.ok("POST", "/v1/accounts/acct/sweep")["items"]]
    assert kinds == ["ssh-key"], "the key goes when no machine needs it"
    assert fake.ssh_keys == {}


def test_no_credential_is_stored_logged_or_sent_to_a_machine(
    server: Server, url: str, fake: FakeLambda, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    added(server, url, fake)
    shared(server)
    fake.locked_out = True
    server.ok("POST", "/v1/accounts/acct/check")
    server.settle()
    fake.locked_out = False
    server.ok("POST", "/v1/instances", LAUNCH, server.owner)
    server.settle()
    fake.over_quota = True
    server.ok("POST", "/v1/instances", {**LAUNCH, "name": "two"}, server.owner)
    server.settle()
    texts = [caplog.text, *(machine.boot + str(machine.label) for machine in fake.machines.values())]
    for target in (
        "/v1/accounts",
        "/v1/accounts/acct",
        "/v1/sites",
        "/v1/sites/acct",
        "/v1/events/server",
        "/v1/audit",
    ):
        texts.append(server.ask("GET", target, server.operator).body.decode())
    dump = sqlite3.connect(tmp_path / "cloud" / "cloud.db")
    texts.append("\n".join(dump.iterdump()))
    dump.close()
    for path in tmp_path.rglob("*"):
        if path.is_file():
            texts.append(path.read_bytes().decode("latin-1"))
    assert [text[:200] for text in texts if KEY in text] == []
    assert server.cloud.vault.derive("host key").hex() not in "".join(texts)
    (machine,) = fake.alive
    assert "ssh-ed25519" in machine.boot


def test_a_provider_that_repeats_the_key_does_not_get_it_into_an_error(
    server: Server, url: str, fake: FakeLambda, monkeypatch: pytest.MonkeyPatch
) -> None:
    added(server, url, fake)
    said = {"error": {"code": "global/invalid-api-key", "message": f"bad key {KEY}", "suggestion": ""}}
    monkeypatch.setattr(fake, "route", lambda *words: (401, said))
    problem = server.ok("POST", "/v1/accounts/acct/check")["problem"]
    assert "bad key …" in problem


def test_credentials_of_another_installation_s_key_are_refused(
    server: Server, url: str, fake: FakeLambda, tmp_path: Path
) -> None:
    added(server, url, fake)
    server.cloud.engines.drop("acct")
    (tmp_path / "cloud" / "secrets.key").write_bytes(b"x" * 32)
    server.cloud.synchronise_sites()
    site = server.ok("GET", "/v1/sites/acct")
    assert (site["state"], "cannot be decrypted" in site["problem"]) == ("broken", True)
    assert "cannot be decrypted" in server.ok("POST", "/v1/accounts/acct/check")["problem"]


def test_delete_of_a_machine_is_confirmed_by_two_listings(server: Server, url: str, fake: FakeLambda) -> None:
    from teraflock.instance.ending import StillEnding

    added(server, url, fake)
    shared(server)
    made = server.ok("POST", "/v1/instances", LAUNCH, server.owner)["items"][0]
    server.settle()
    driver = server.cloud.engines.at("acct")
    handle = Handle(InstanceId(made["id"]), "")
    for _ in range(2):
        with pytest.raises(StillEnding):
            driver.delete(handle)
    driver.delete(handle)
    assert fake.alive == []


# Launching by provider


def test_a_provider_is_enough_to_launch(server: Server, url: str, fake: FakeLambda) -> None:
    added(server, url, fake)
    body = {"name": "far", "provider": "lambda", "type": "gpu_1x_a10"}
    assert (
        "has no account at `lambda`"
        in server.refused("POST", "/v1/instances", body, server.owner).json["detail"]
    )
    shared(server)
    made = server.ok("POST", "/v1/instances", body, server.owner)["items"][0]
    assert (made["site"], made["rental"]["type"]) == ("acct", "gpu_1x_a10")
    by_gpu = {"name": "near", "provider": "lambda", "shape": {"gpu": "A10", "gpus": 1}}
    assert (
        server.ok("POST", "/v1/instances", by_gpu, server.owner)["items"][0]["rental"]["type"] == "gpu_1x_a10"
    )
    for change, words in (
        ({"shape": {"gpu": "H100"}}, "has no machine with 1× H100"),
        ({"max_price_micros_per_hour": 1}, "has no machine with 1× A10"),
        ({"site": "acct"}, "cannot be combined"),
        ({"shape": {}}, "needs a machine type or a GPU"),
    ):
        refused = server.refused(
            "POST", "/v1/instances", {**by_gpu, "name": "no", **change}, server.owner
        ).json
        assert words in refused["detail"]


@pytest.mark.parametrize(
    ("provider", "kind", "currency"), [("gcp", FakeGce, "USD"), ("tencent", FakeTencent, "CNY")]
)
def test_tokens_and_other_services_are_below_the_base_url(
    server: Server, provider: str, kind: type[FakeCloud], currency: str
) -> None:
    """Over real HTTP: the token service, the price list and the network service of a provider are asked too."""
    fake = kind(CLOCK)
    with FakeServer(fake) as served:
        options = {"base_url": served.url, **fake.options}
        body = {"name": "other", "provider": provider, "secret": fake.secret, "options": options}
        made = server.ok("POST", "/v1/accounts", body)
        assert made["currency"] == currency
        server.cloud.synchronise_sites()
        checked = server.ok("POST", "/v1/accounts/other/check")
        assert (checked["ok"], checked["problem"]) == (True, "")
        driver = server.cloud.engines.at("other")
        assert isinstance(driver, CloudSite)
        assert driver.refresh_types()[0].currency == currency
        fake.locked_out = True
        refused = server.ok("POST", "/v1/accounts/other/check")
        assert not refused["ok"]
        assert fake.secret.partition(":")[2][:20] not in str(refused)
        server.cloud.synchronise_sites()


def test_two_currencies_for_one_account_are_refused(server: Server) -> None:
    body = {
        "name": "other", "provider": "tencent", "secret": "a:b", "currency": "USD", "options": {"currency": "CNY"},
    }  # fmt: skip
    assert "one currency" in server.refused("POST", "/v1/accounts", body).json["hint"]


def test_burst_rents_what_no_own_host_has(server: Server, url: str, fake: FakeLambda) -> None:
    added(server, url, fake)
    shared(server)
    body = {"name": "n", "provider": "lambda", "type": "gpu_1x_a10", "burst": True}
    assert server.ok("POST", "/v1/instances", body, server.owner)["items"][0]["site"] == "acct"
    refused = server.refused("POST", "/v1/instances", {**body, "image": "nothing"}, server.owner).json
    assert "nothing" in refused["detail"], "what is wrong everywhere is not taken for missing room"


def test_burst_uses_own_hosts_first(server: Server, url: str, fake: FakeLambda) -> None:
    added(server, url, fake)
    shared(server)
    driver = server.cloud.engines.at("acct")
    assert isinstance(driver, CloudSite)
    eight = next(each for each in driver.types() if each.gpus == 8)
    driver._types = (
        replace(eight, name="gpu_1x_v100", gpus=1, vcpus=2, ram_bytes=1 << 30, disk_bytes=1 << 30),
    )
    body = {"provider": "lambda", "type": "gpu_1x_v100", "burst": True}
    where = [
        server.ok("POST", "/v1/instances", {"name": f"n{n}", **body}, server.owner)["items"][0]["site"]
        for n in range(5)
    ]
    assert where == ["simulated"] * 4 + ["acct"], "two hosts have four such GPUs"
