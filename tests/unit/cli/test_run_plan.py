"""The plan of a run: from a trace to GPU, time and cost; without one it says so."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from teraflock.base.errors import Refused
from teraflock.cli.run.estimate import expected
from teraflock.cli.run.plan import lines, planned
from teraflock.cli.run.request import given_words, request_from
from teraflock.wire.quote import QuoteRequest
from teraflock.workload.model import Workload
from teraflock.workload.trace import write_trace
from teraflock.workload.zoo import trace_for

NOW = datetime.now(UTC)
PRICES = {"V100-SXM2": 3_000_000, "A100-SXM4-80": 5_000_000}


class Hosts:
    """A client of a server whose hosts have two GPU models."""

    def __init__(self, *, priced: bool = True) -> None:
        self.priced = priced
        self.shapes = SimpleNamespace(
            list=lambda: [SimpleNamespace(shape=SimpleNamespace(gpu=name)) for name in PRICES]
        )
        self.quotes = SimpleNamespace(get=self.quote)
        self.runs = SimpleNamespace(page=lambda: SimpleNamespace(items=()))

    def quote(self, asked: QuoteRequest) -> Any:
        if not self.priced:
            raise Refused("There is no price book")
        micros = PRICES.get(asked.shape.gpu, 100_000)
        gpus = 1 if asked.shape.gpu else 0
        return SimpleNamespace(
            micros_per_hour=micros // (3 if asked.mode == "spot" else 1), currency="USD", gpu=asked.shape.gpu,
            gpus=gpus, vcpus=8, ram_bytes=1 << 34, disk_bytes=1 << 36,
        )  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TERA_HOME", str(tmp_path / "home"))
    (tmp_path / "train.py").write_text("print(1)\n")
    workload = Workload(model="resnet18", batch=64, precision="fp32", optimizer="sgd")
    (tmp_path / "job.trace").write_bytes(write_trace(trace_for(workload)))
    return tmp_path


def plan_of(hosts: Hosts, **options: object) -> Any:
    words = given_words("train.py", (), options)
    return planned(hosts, request_from(words, None, NOW), words)  # type: ignore[arg-type]


def test_trace_gives_an_interval_and_the_cheapest_gpu(folder: Path) -> None:
    plan = plan_of(Hosts(), trace="job.trace", steps=100_000)
    estimate = plan.request.estimate
    assert estimate.source == "trace"
    assert estimate.gpu in PRICES
    assert plan.request.shape.gpu == estimate.gpu
    low, middle, high = estimate.hours
    assert 0 < low <= middle <= high
    assert estimate.cost_micros[1] == round(middle * PRICES[estimate.gpu])
    words = given_words("train.py", (), {"trace": "job.trace", "steps": 100_000})
    found, _ = expected(Hosts(), words)  # type: ignore[arg-type]
    assert {each.gpu for each in found} == set(PRICES), "only GPUs of the hosts"
    costs = {each.gpu: each.hours[1] * PRICES[each.gpu] for each in found if each.hours}
    assert min(costs, key=lambda gpu: costs[gpu]) == estimate.gpu
    shown = dict(lines(plan, None))
    assert "USD" in shown["cost"]
    assert "(" in shown["time"], "an interval"


def test_deadline_prefers_the_faster_gpu(folder: Path) -> None:
    slow = plan_of(Hosts(), trace="job.trace", steps=10_000_000)
    fast = plan_of(Hosts(), trace="job.trace", steps=10_000_000, deadline="1h")
    assert fast.request.estimate.hours[1] <= slow.request.estimate.hours[1]
    assert "does not meet" in dict(lines(fast, None))["deadline"]


def test_missing_knowledge_is_said(folder: Path) -> None:
    plan = plan_of(Hosts(priced=False))
    assert plan.request.estimate is None
    assert plan.notes
    assert plan.notes[0].startswith("No estimate: ")
    assert "cost" not in dict(lines(plan, None))


def test_spot_with_a_deadline_shows_what_it_may_cost(folder: Path) -> None:
    plan = plan_of(Hosts(), hours=5.0, mode="spot", deadline="40h", gpu="V100-SXM2")
    assert plan.distribution.late_share == 0
    assert plan.distribution.p50 < plan.distribution.steady
    shown = dict(lines(plan, None))
    assert shown["late"] == "0.0% of 120 simulations"
    assert plan.request.estimate.cost_micros == tuple(
        getattr(plan.distribution, each) for each in ("p10", "p50", "p90")
    ), "not only what spot alone would cost: `tera run show` compares with it later"
    assert shown["cost"].count("USD") == 3
    assert shown["on demand"].endswith(" USD")
    assert plan.request.deadline - NOW == timedelta(hours=40)


def test_spot_without_prices_shows_only_how_often_it_is_late(folder: Path) -> None:
    plan = plan_of(Hosts(priced=False), hours=5.0, mode="spot", deadline="40h", gpu="V100-SXM2")
    shown = dict(lines(plan, None))
    assert shown["late"] == "0.0% of 120 simulations"
    assert "cost" not in shown
    assert "on demand" not in shown


def test_plan_without_prices_still_names_the_instance(folder: Path) -> None:
    shown = dict(lines(plan_of(Hosts(priced=False), gpu="V100-SXM2", hours=1.0), None))
    assert shown["instance"] == "1× V100-SXM2"
    assert shown["price"] == "unknown"
    shown = dict(lines(plan_of(Hosts(), gpu="V100-SXM2", hours=1.0), None))
    assert "vCPU" in shown["instance"]
    assert "USD" in shown["price"]


def test_budget_below_the_expected_cost_is_told(folder: Path) -> None:
    sweep = {"gpu": "V100-SXM2", "hours": 1.0, "sweep": ("lr=1,2",)}
    low, enough = (plan_of(Hosts(), **sweep, budget=amount) for amount in ("5", "6"))
    assert dict(lines(low, None))["budget"].endswith("together, less than the expected 6.00 USD")
    assert dict(lines(enough, None))["budget"].endswith("together")


def test_plan_of_several_nodes_has_the_price_of_all_of_them(folder: Path) -> None:
    one, three = (plan_of(Hosts(), gpu="V100-SXM2", hours=2.0, nodes=count) for count in (1, 3))
    assert three.micros_per_hour == 3 * one.micros_per_hour
    assert three.request.estimate.cost_micros[1] == 3 * one.request.estimate.cost_micros[1]
    assert ("nodes", "3") in list(lines(three, None))


def test_epochs_and_samples_say_how_long_it_takes(folder: Path) -> None:
    one, two = (
        plan_of(Hosts(), trace="job.trace", gpu="V100-SXM2", epochs=epochs, samples=64_000.0)
        for epochs in (1.0, 2.0)
    )
    assert two.request.estimate.hours[1] == pytest.approx(2 * one.request.estimate.hours[1])
    assert not one.notes


def test_plan_on_a_rented_machine_has_the_traffic_of_its_checkpoints(folder: Path) -> None:
    own = plan_of(Hosts(), trace="job.trace", gpu="V100-SXM2", steps=1e6)
    rented = plan_of(Hosts(), trace="job.trace", gpu="V100-SXM2", steps=1e6, provider="aws")
    assert not dict(lines(own, None)).get("egress")
    assert dict(lines(rented, None))["egress"].startswith("up to ")
    assert "USD" in dict(lines(rented, None))["egress"]
