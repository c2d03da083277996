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
