"""A job's hours are those of `tera estimate`, for every number of GPUs; what does not run has the reason."""

import pytest
from msgspec.structs import replace

from teraflock.catalog.cards import all_cards
from teraflock.estimate.answer import Question, answer
from teraflock.offer.model import Shape
from teraflock.plan.job import Job
from teraflock.plan.model import Hours, Misfit
from teraflock.workload.model import Workload

VGG = Workload(model="vgg16", batch=256, optimizer="sgd")
SHAPE = Shape(
    provider="p", instance_type="t", kind="gpu", gpu="V100-SXM2-32", gpu_name="", gpu_count=1, gpu_share=1.0,
    gpu_memory_bytes=32 << 30, vcpus=None, ram_bytes=None, mode="on-demand", term_months=None, standing="priced",
    currency="USD", doubtful=False, price_micros_per_month=1, offers=1, as_of="",
)  # fmt: skip


@pytest.mark.parametrize("gpus", [1, 2, 4, 8])
def test_hours_are_those_of_the_estimate(gpus: int) -> None:
    job = Job(VGG, steps=None, samples=1_000_000)
    question = Question(cards=all_cards(), gpus=gpus, samples=1_000_000)
    for row in answer(VGG, question).gpus:
        found = job(replace(SHAPE, gpu=row.gpu, gpu_count=gpus))
        if isinstance(found, Hours):
            assert row.fits
            assert row.hours is not None
            assert found.p50 == pytest.approx(row.hours.p50)
            assert (found.p10, found.p90) == pytest.approx((row.hours.p10, row.hours.p90))
        else:
            assert not row.fits or row.hours is None


def test_the_survey_s_configurations_fit_as_measured() -> None:
    """VGG-16 at batch 256 needs 23 GB, at 128 it trains inside 11: of the six configurations, per card."""
    needs = {
        128: {"M40-24", "P40", "P100-PCIe", "V100-SXM2-32", "V100-SXM2"},
        256: {"M40-24", "P40", "V100-SXM2-32"},
    }
    for batch, fitting in needs.items():
        job = Job(replace(VGG, batch=batch), steps=100, samples=None)
        cards = ("M40-24", "P40", "K40", "P100-PCIe", "V100-SXM2-32", "V100-SXM2")
        assert {gpu for gpu in cards if isinstance(job(replace(SHAPE, gpu=gpu)), Hours)} == fitting


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"gpu": "TPU-v4"}, "no_estimate"),
        ({"gpu_share": 0.25}, "slice"),
        ({"gpu_count": 16}, "too_many_to_estimate"),
        ({"gpu": "K40"}, "does_not_fit"),
        ({"gpu": "S7150"}, "precision"),
    ],
)
def test_what_does_not_run_has_a_reason(changes: dict[str, object], code: str) -> None:
    found = Job(VGG, steps=10, samples=None)(replace(SHAPE, **changes))
    assert isinstance(found, Misfit)
    assert found.code == code
    assert found.reason
