"""The page of accounts at clouds, for operators."""

from datetime import UTC, datetime

import pytest
from tests.api.asking import Tenants
from tests.console.visiting import ConsoleServer
from tests.fakes.base import KEY
from tests.fakes.lambda_cloud import FakeLambda
from tests.fakes.server import FakeServer

from teraflock.base.clock import FixedClock
from teraflock.drivers.clouds.lambda_cloud import LambdaCloud
from teraflock.drivers.clouds.model import Pace

FAR = {
    "region_name": "us-east-1",
    "instance_type_name": "gpu_1x_a10",
    "ssh_key_names": ["k"],
    "user_data": "",
}


def test_an_account_shows_its_state_limits_cost_and_what_is_left_over(
    console: ConsoleServer, tenants: Tenants, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LambdaCloud, "pace", Pace(call_seconds=0, launch_seconds=0))
    fake = FakeLambda(FixedClock(datetime(2026, 11, 15, 12, tzinfo=UTC)))
    with FakeServer(fake) as served:
        body = {
            "name": "near", "provider": "lambda", "secret": KEY, "limit_micros": 500_000_000,
            "options": {"base_url": served.url},
        }  # fmt: skip
        made = console.ask("POST", "/v1/accounts", key=tenants.keys["operator"], body=body)
        assert made.status == 201, made.json
        console.cloud.synchronise_sites()
        mark = console.cloud.engines.at("near")._mark  # type: ignore[attr-defined]
        fake.ssh_keys["k"] = {"id": "k", "name": "k", "public_key": "ssh-ed25519 AAAA"}
        token = {"key": "teraflock-token", "value": "ins_0000000000000001.1.0"}
        fake._launch({**FAR, "tags": [{"key": "teraflock", "value": mark}, token]})
        session = console.session(tenants.keys["operator"])
        page = console.get("/console/clouds", session)
        assert page.status == 200
        assert "near" in page.words
        assert "500.00 USD" in page.words
        assert "untested live" in page.words
        assert KEY not in page.text
        left = console.get("/console/clouds/near/orphans", session)
        assert "machine" in left.words
        assert "0.7500 USD/h" in left.words
        assert "tera account sweep near" in left.words
        fake.locked_out = True
        broken = console.get("/console/clouds/near/orphans", session)
        assert (broken.status, "could not be asked" in broken.words) == (200, True)
        assert KEY not in broken.text


def test_what_a_project_has_an_account_for_can_be_launched_from_offers(
    console: ConsoleServer, tenants: Tenants, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LambdaCloud, "pace", Pace(call_seconds=0, launch_seconds=0))
    fake = FakeLambda(FixedClock(datetime(2026, 11, 15, 12, tzinfo=UTC)))
    owner, other = (console.session(tenants.keys[who]) for who in ("owner", "other"))
    with FakeServer(fake) as served:
        body = {"name": "near", "provider": "lambda", "secret": KEY, "options": {"base_url": served.url}}
        key, project = tenants.keys["operator"], tenants.ids["project"]
        assert console.ask("POST", "/v1/accounts", key=key, body=body).status == 201
        console.cloud.synchronise_sites()
        console.cloud.engines.at("near").refresh_types()  # type: ignore[attr-defined]
        target = f"/v1/usable-providers?project={project}"
        assert console.ask("GET", target, key=tenants.keys["owner"]).json == {"items": []}
        shared = f"/v1/accounts/near/projects/{project}"
        assert console.ask("PUT", shared, key=key, body={}).status == 200
        assert console.ask("GET", target, key=tenants.keys["owner"]).json == {"items": ["lambda"]}
        fields = "provider=lambda&type=gpu_1x_a10&region=us-east-1&mode=on-demand&max_price=0.80"
        page = console.get(f"/console/projects/{project}/launch?{fields}", owner)
        assert "gpu_1x_a10" in page.words
        quote = console.get(f"/console/projects/{project}/quote?{fields}", owner)
        assert (quote.status, "per hour" in quote.words or "Free" in quote.words) == (200, True), quote.words
        form = dict(each.split("=") for each in fields.split("&"))
        low = console.post(f"/console/projects/{project}/launch", owner, {**form, "max_price": "0.10"})
        assert (low.status, "more than your limit" in low.words) == (409, True), low.words[-400:]
        made = console.post(f"/console/projects/{project}/launch", owner, {**form, "name": "rented"})
        assert made.status == 303, made.words
        found = console.ask("GET", f"/v1/instances/rented?project={project}", key=tenants.keys["owner"])
        assert found.json["site"] == "near"
        assert console.get(f"/console/projects/{project}/launch?{fields}", other).status == 404


def test_offers_link_to_a_launch_only_where_an_account_is(
    unchanged: ConsoleServer, tenants: Tenants, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = unchanged.session(tenants.keys["owner"])
    assert "/launch?" not in unchanged.get("/console/offers?provider=aws", session).text
    monkeypatch.setattr("teraflock.instance.service.InstanceService.providers", lambda *_: frozenset({"aws"}))
    page = unchanged.get("/console/offers?provider=aws", session)
    assert "/launch?provider=aws&amp;mode=on-demand&amp;max_price=0.900000&amp;type=p2.xlarge" in page.text
    assert "/launch?" not in unchanged.get("/console/offers?provider=gcp", session).text
    viewer = unchanged.session(tenants.keys["viewer"])
    assert "/launch?" not in unchanged.get("/console/offers?provider=aws", viewer).text
