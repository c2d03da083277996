"""Which options of a launch rent an offer."""

from typing import Any

import pytest
from msgspec import to_builtins
from msgspec.structs import replace

from teraflock.base.errors import BadInput, Refused
from teraflock.cli.instance import offer_file, plan_file
from teraflock.cli.instance.plan_file import Planned
from teraflock.plan.model import Hours
from teraflock.plan.owned import PROVIDER
from teraflock.wire import renting
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
    shape, options = renting.options_of(OFFER)
    assert to_builtins(shape)["gpu"] in ("", None)
    assert options == {
        "provider": "lambda", "type": "gpu_1x_a10", "region": "us-east-1", "mode": "on-demand", "max_price": "0.750000",
    }  # fmt: skip


@pytest.mark.parametrize("provider", ["vast", "runpod"])
def test_a_market_is_asked_by_gpu(provider: str) -> None:
    shape, options = renting.options_of(replace(OFFER, provider=provider, gpu_count=2))
    assert (shape.gpu, shape.gpus, "type" in options) == ("a10", 2, False)


def test_several_regions_leave_the_region_open() -> None:
    assert renting.options_of(replace(OFFER, region="a|b"))[1]["region"] == ""


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"mode": "reserved"}, "cannot be launched"),
        ({"price_usd_per_hour": None}, "price of this offer is unknown"),
        ({"instance_type": ""}, "has no machine type"),
    ],
)
def test_what_cannot_be_rented_is_refused(change: dict[str, Any], words: str) -> None:
    with pytest.raises(Refused, match=words):
        renting.options_of(replace(OFFER, **change))


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


def test_the_offers_after_the_best_one_are_its_alternatives() -> None:
    own = replace(OFFER, provider=PROVIDER, mode="owned")
    usable = [replace(OFFER, id=f"{n:016x}", price_usd_per_hour=float(n)) for n in range(1, 4)]
    unusable = [
        replace(OFFER, mode="reserved"), replace(OFFER, price_usd_per_hour=None),
        replace(OFFER, instance_type=""), replace(OFFER, mode="bid"), own, None,
    ]  # fmt: skip
    offers = [usable[0], *unusable, usable[1], usable[2]]
    plan = Planned(choices=tuple(choice(rank, offer) for rank, offer in enumerate(offers, start=1)))
    twice = Planned(choices=(*plan.choices, replace(choice(99, usable[1]), instances=2)))
    assert plan_file.offers(twice, plan.choices[0]) == (usable[1], usable[2])
    many = Planned(choices=tuple(choice(rank, OFFER) for rank in range(100)))
    assert len(plan_file.offers(many, many.choices[0])) == 31


def test_an_alternative_has_the_price_limit_of_its_offer_or_the_given_one() -> None:
    found = renting.alternative_of(replace(OFFER, provider="vast", mode="spot"), None)
    assert (found.provider, found.shape.gpu, found.mode, found.max_price_micros_per_hour) == (
        "vast", "a10", "spot", 750_000,
    )  # fmt: skip
    found = renting.alternative_of(OFFER, 900_000)
    assert (found.type, found.region, found.max_price_micros_per_hour, found.offer) == (
        "gpu_1x_a10", "us-east-1", 900_000, "0" * 16,
    )  # fmt: skip
