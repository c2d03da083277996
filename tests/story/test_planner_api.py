"""A user plans a job over the API; the server stops or is killed."""

import signal
import time
from pathlib import Path

import pytest
from tests.story.api_server import SECONDS_MAX, Server, running

from teraflock.base.errors import BadInput, UnknownName
from teraflock.client import Client
from teraflock.offer.words import OfferWords
from teraflock.wire.estimate import EstimateRequest
from teraflock.wire.plan import PlanRequest


def test_a_job_is_planned_over_the_api(tmp_path: Path) -> None:
    with running(tmp_path / "home") as server, server.client() as client:
        cards = {each.gpu for each in client.gpus.list("V100")}
        offers = client.offers.list(OfferWords(gpu=("V100",), mode=("on-demand", "spot")), limit=3)
        assert len(offers) == 3
        assert {each.gpu for each in offers} <= cards
        prices = [each.price_usd_per_hour for each in offers]
        assert prices == sorted(prices, key=lambda price: price or 0)
        assert client.providers.list("aws")[0].facts is not None
        assert {each.currency for each in client.rates.list()} >= {"USD", "CNY"}
        (fits,) = client.estimates.create(EstimateRequest(model="resnet18", batch=64, gpu=("T4",))).gpus
        assert fits.fits
        plan = client.plans.create(PlanRequest(model="resnet18", batch=64, steps=1000.0, top=2))
        assert len(plan.choices) == 2
        nothing = client.plans.create(PlanRequest(hours=10.0, budget="0.0001"))
        assert nothing.choices == ()
        assert nothing.no_plan is not None
        with pytest.raises(UnknownName) as unknown:
            client.offers.list(OfferWords(gpu=("V1000",)))
        assert "V100" in unknown.value.hint
        with pytest.raises(BadInput, match="number of samples"):
            client.estimates.create(EstimateRequest(model="resnet18"))


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_no_planner_process_outlives_the_server(tmp_path: Path, how: signal.Signals) -> None:
    server = Server(tmp_path / "home").start()
    with server.client() as client:
        asked(client)
        workers = planners(server)
        assert len(workers) == 1
    server.end(how)
    until = time.monotonic() + SECONDS_MAX
    while any(is_running(pid) for pid in workers):
        assert time.monotonic() < until
        time.sleep(0.02)
    server.start()
    with server.client() as client:
        asked(client)
    server.end()


def asked(client: Client) -> None:
    assert client.plans.create(PlanRequest(hours=10.0, top=1)).choices
    assert client.offers.list(limit=1)


def planners(server: Server) -> list[int]:
    assert server.process is not None
    children = Path(f"/proc/{server.process.pid}/task").glob("*/children")
    return [
        pid
        for each in children
        for pid in map(int, each.read_text().split())
        if b"planner.worker" in Path(f"/proc/{pid}/cmdline").read_bytes()
    ]


def is_running(pid: int) -> bool:
    """Return whether a process runs. A zombie does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False
