"""Which options of a launch rent an offer."""

from typing import Any

import pytest
from msgspec import to_builtins
from msgspec.structs import replace

from teraflock.base.errors import BadInput, Refused
from teraflock.cli.instance import offer_file, plan_file
from teraflock.cli.instance.plan_file import Planned
from teraflock.plan.model import Hours
from teraflock.wire.offer import OfferShape
from teraflock.wire.plan import ChoiceShape, CostShape

OFFER = OfferShape(
    provider="lambda", region="us-east-1", zone="", instance_type="gpu_1x_a10", gpu="a10", gpu_name="A10", gpu_count=1,
    gpu_share=1.0, gpu_memory_bytes=None, gpu_memory_total_bytes=None, gpu_fp32_tflops=None, vcpus=None, cpu="",
    ram_bytes=None, disk_gb=None, network_gbps=None, mode="on-demand", term_months=None, standing="priced",
    price_micros=750_000, price_per_gpu_micros=750_000, currency="USD", per="hour", price_usd_per_hour=0.75,
    quoted=None, since="", as_of="", source="", cited="", flags=(), note="", id="0" * 16,
)  # fmt: skip


def choice(rank: int, offer: OfferShape | None) -> ChoiceShape:
    return ChoiceShape(
        rank=rank, offer=offer, instances=1, gpu_count=1, mode="on-demand", hours=Hours(1, 1, 1),
        cost=CostShape(1, 1, 1, "USD"), parts=(), interruptions=0.0, pareto=True,
    )  # fmt: skip


def test_an_offer_becomes_provider_type_region_and_price_limit() -> None:
    shape, options = offer_file.options_of(OFFER)
    assert to_builtins(shape)["gpu"] in ("", None)
    assert options == {
        "provider": "lambda", "type": "gpu_1x_a10", "region": "us-east-1", "mode": "on-demand", "max_price": "0.750000",
    }  # fmt: skip


@pytest.mark.parametrize("provider", ["vast", "runpod"])
def test_a_market_is_asked_by_gpu(provider: str) -> None:
    shape, options = offer_file.options_of(replace(OFFER, provider=provider, gpu_count=2))
    assert (shape.gpu, shape.gpus, "type" in options) == ("a10", 2, False)


def test_several_regions_leave_the_region_open() -> None:
    assert offer_file.options_of(replace(OFFER, region="a|b"))[1]["region"] == ""


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"mode": "reserved"}, "cannot be launched"),
        ({"price_usd_per_hour": None}, "price of this offer is unknown"),
        ({"instance_type": ""}, "names no machine type"),
    ],
)
def test_what_cannot_be_rented_is_refused(change: dict[str, Any], words: str) -> None:
    with pytest.raises(Refused, match=words):
        offer_file.options_of(replace(OFFER, **change))


def test_an_invalid_id_is_refused() -> None:
    with pytest.raises(BadInput, match="not the id"):
        offer_file.find("../etc")


def test_a_plan_prefers_own_hosts_then_its_best_offer() -> None:
    own = replace(OFFER, provider="own")
    plan = Planned(choices=(choice(1, OFFER), choice(2, own)))
    assert plan_file.choose(plan, None).rank == 2
    assert plan_file.choose(plan, None, rented=True).rank == 1
    assert plan_file.choose(plan, 1).offer == OFFER
    assert plan_file.choose(Planned(choices=(choice(1, OFFER),)), None).rank == 1
    with pytest.raises(Refused, match="no choice that can be launched"):
        plan_file.choose(Planned(choices=(choice(1, None),)), None)
