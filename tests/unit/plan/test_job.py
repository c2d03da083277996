"""The hours of a job equal `tera estimate` for every number of GPUs; a job that cannot run has a reason."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from teraflock.catalog.cards import all_cards
from teraflock.catalog.model import Card
from teraflock.estimate.answer import answer
from teraflock.estimate.model import Question
from teraflock.offer.model import Shape
from teraflock.plan.assumptions import shipped_assumptions
from teraflock.plan.job import Job
from teraflock.plan.model import Hours, Misfit
from teraflock.workload.model import Workload
from teraflock.workload.trace import (
    EVENT_KINDS,
    EventKind,
    Mark,
    Parameter,
    Tensor,
    Trace,
    TracedOperation,
    write_trace,
)

VGG = Workload(model="vgg16", batch=256, optimizer="sgd")
SHAPE = Shape(
    provider="p", instance_type="t", kind="gpu", gpu="V100-SXM2-32", gpu_name="", gpu_count=1, gpu_share=1.0,
    gpu_memory_bytes=32 << 30, vcpus=None, ram_bytes=None, mode="on-demand", term_months=None, standing="priced",
    currency="USD", doubtful=False, price_micros_per_month=1, offers=1, as_of="",
)  # fmt: skip


@pytest.mark.parametrize(("gpus", "passes"), [(1, 1), (2, 1), (2, 4), (4, 1), (8, 1)])
def test_hours_equal_the_estimate(gpus: int, passes: int) -> None:
    workload = replace(VGG, accumulate=passes)
    job = Job(workload, steps=None, samples=1_000_000)
    question = Question(cards=all_cards(), gpus=gpus, samples=1_000_000)
    for row in answer(workload, question).gpus:
        found = job(replace(SHAPE, gpu=row.gpu, gpu_count=gpus))
        if isinstance(found, Hours):
            assert row.fits
            assert row.hours is not None
            assert found.p50 == pytest.approx(row.hours.p50)
            assert (found.p10, found.p90) == pytest.approx((row.hours.p10, row.hours.p90))
        else:
            assert not row.fits or row.hours is None


@pytest.mark.parametrize(("stage", "offload"), [(0, True), (1, False), (2, True), (3, False), (3, True)])
def test_hours_of_sharded_jobs_equal_the_estimate(stage: int, offload: bool) -> None:
    workload = Workload(model="distilbert", batch=4, seq=128, precision="fp16", optimizer="adamw")
    cards = [each for each in all_cards() if each.id in ("V100-SXM2-32", "L4", "H200-SXM")]
    for gpus in (2, 8):
        job = Job(workload, steps=3600.0, samples=None, stage=stage, offload=offload)
        question = Question(cards=cards, gpus=gpus, stage=stage, offload=offload)
        sharded, whole = answer(workload, question), answer(workload, Question(cards=cards, gpus=gpus))
        for row, other in zip(sharded.gpus, whole.gpus, strict=True):
            found = job(replace(SHAPE, gpu=row.gpu, gpu_count=gpus))
            assert isinstance(found, Hours)
            assert row.step_seconds is not None
            assert found.p50 == pytest.approx(row.step_seconds.p50)
            assert (found.p10, found.p90) == pytest.approx((row.step_seconds.p10, row.step_seconds.p90))
            assert row.need_bytes < other.need_bytes
        assert sharded.assumptions[1:] != whole.assumptions[1:]


def test_own_hosts_are_not_shared() -> None:
    small = Workload(model="resnet50", batch=2, optimizer="sgd")
    job = Job(small, steps=3600.0, samples=None)
    rented, owned = (job(replace(SHAPE, gpu="H200-SXM", mode=each)) for each in ("on-demand", "owned"))
    assert isinstance(rented, Hours)
    assert isinstance(owned, Hours)
    cards = [each for each in all_cards() if each.id == "H200-SXM"]
    row = answer(small, Question(cards=cards, host="own")).gpus[0]
    assert row.step_seconds is not None
    assert owned.p50 == pytest.approx(row.step_seconds.p50)
    assert owned.p50 < 0.8 * rented.p50


def test_a_trace_is_refused_where_its_own_precision_does_not_run(tmp_path: Path) -> None:
    """The precision of a trace is recorded in it; the default of the options says nothing about it."""
    allocate, mark, operate = (int(kind) for kind in (EventKind.ALLOCATE, EventKind.MARK, EventKind.OPERATE))
    side = Tensor("b", [2])
    trace = Trace(
        name="one", torch="2", symbols={}, expressions=[1 << 20, 1 << 20, 1 << 19],
        events=[allocate, mark + EVENT_KINDS * int(Mark.STEP), operate, mark + EVENT_KINDS * int(Mark.END)],
        operations=[TracedOperation("relu", [side], [side])], parameters=[Parameter([2], "b", True)], kinds="p",
        samples=1, precision="amp-bf16",
    )  # fmt: skip
    path = tmp_path / "one.trace"
    path.write_bytes(write_trace(trace))
    workload = Workload(model=str(path), batch=0)
    job = Job(workload, steps=10.0, samples=None)
    volta, ampere = (job(replace(SHAPE, gpu=gpu)) for gpu in ("V100-SXM2", "A100-SXM4-40"))
    assert volta == Misfit("precision", "Volta does not support bf16")
    assert isinstance(ampere, Hours)
    rows = answer(workload, Question(cards=all_cards())).gpus
    for row in rows:
        found = job(replace(SHAPE, gpu=row.gpu))
        assert row.fits or isinstance(found, Misfit), (
            f"a plan must not use {row.gpu}, which the estimate refuses"
        )


@settings(max_examples=40, deadline=None)
@given(
    model=st.sampled_from(["resnet18", "alexnet", "bert-base"]),
    batch=st.integers(1, 2000),
    gpus=st.integers(1, 8),
    card=st.sampled_from(all_cards()),
)
def test_a_job_fits_exactly_where_the_full_estimate_fits(
    model: str, batch: int, gpus: int, card: Card
) -> None:
    """For any batch, card and number of GPUs, the fast path equals the full estimate."""
    workload = Workload(model=model, batch=batch, optimizer="sgd")
    row = next(
        each for each in answer(workload, Question(cards=all_cards(), gpus=gpus)).gpus if each.gpu == card.id
    )
    found = Job(workload, steps=3600.0, samples=None)(replace(SHAPE, gpu=card.id, gpu_count=gpus))
    if row.fits and row.step_seconds:
        assert isinstance(found, Hours)
        assert found.p50 == pytest.approx(row.step_seconds.p50)
    else:
        assert isinstance(found, Misfit)
        if found.code == "does_not_fit":
            assert found.by == max(0, row.need_bytes - row.memory_bytes)


@pytest.mark.parametrize("gbps", [1.0, 10.0, 400.0])
def test_several_machines_are_never_faster_than_one_with_the_same_gpus(gbps: float) -> None:
    job = Job(VGG, steps=None, samples=1_000_000, network_gbps=gbps)
    for card in ("V100-SXM2-32", "A100-SXM4-80", "RTX3090", "H200-SXM"):
        shape = replace(SHAPE, gpu=card)
        in_one, apart = job(replace(shape, gpu_count=8), 1), job(replace(shape, gpu_count=2), 4)
        alone = job(shape, 1)
        assert isinstance(in_one, Hours)
        assert isinstance(apart, Hours)
        assert isinstance(alone, Hours)
        assert alone.p50 / 8 < in_one.p50 <= apart.p50 * (1 + 1e-9)
    slow, fast = (Job(VGG, steps=100, samples=None, network_gbps=each)(SHAPE, 4) for each in (1.0, 400.0))
    assert isinstance(slow, Hours)
    assert isinstance(fast, Hours)
    assert fast.p50 < slow.p50


def test_known_configurations_fit_as_measured() -> None:
    """VGG-16 needs 23 GB with batch 256 and less than 11 GB with batch 128: six configurations, per card."""
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
        ({"gpu": "S7150"}, "no_estimate"),
    ],
)
def test_a_job_that_cannot_run_has_a_reason(changes: dict[str, object], code: str) -> None:
    found = Job(VGG, steps=10, samples=None)(replace(SHAPE, **changes))
    assert isinstance(found, Misfit)
    assert found.code == code
    assert found.reason


def test_a_global_batch_is_the_same_work_on_any_number_of_gpus() -> None:
    job = Job(replace(VGG, batch=256), steps=100, samples=None, global_batch=256)
    shape = replace(SHAPE, gpu="V100-SXM2-32")
    one, four = job(shape), job(replace(shape, gpu_count=4))
    assert isinstance(one, Hours)
    assert isinstance(four, Hours)
    assert one.p50 / 4 < four.p50 < one.p50 / 2.5
    by_samples = Job(replace(VGG, batch=256), steps=None, samples=25_600, global_batch=256)(shape)
    assert isinstance(by_samples, Hours)
    assert by_samples.p50 == pytest.approx(one.p50)


def test_the_network_depends_on_the_instance_type() -> None:
    assumed = shipped_assumptions()
    assert assumed.network("p5.48xlarge")[0] == 3200
    assert assumed.network("STANDARD_ND96isr_H100_v5")[0] == 3200
    assert assumed.network("ND96asr_v4")[0] == 1600  # as some tables of Azure write it
    assert assumed.network("p5.4xlarge")[0] == 100
    assert assumed.network("p5en.48xlarge")[0] == 3200
    assert [assumed.network(f"g5.{size}xlarge")[0] for size in (12, 24, 48)] == [40, 50, 100]
    assert assumed.network("a2-highgpu-4g")[0] == 50  # half of a machine has half of the 8g's
    assert assumed.network("BM.GPU.MI300X.8")[0] == 3200
    assert assumed.network("gpu_8x_h100")[0] == assumed.network_gbps
    job = Job(VGG, steps=100, samples=None, network=lambda name: assumed.network(name)[0])
    quick, slow = (
        job(replace(SHAPE, instance_type=each, gpu="V100-SXM2-32"), 4) for each in ("p5.48xlarge", "other")
    )
    assert isinstance(quick, Hours)
    assert isinstance(slow, Hours)
    assert quick.p50 < slow.p50


def test_the_network_of_an_instance_type_is_looked_up_once() -> None:
    asked: list[str] = []

    def network(name: str) -> float:
        asked.append(name)
        return 100.0

    job = Job(VGG, steps=100, samples=None, network=network)
    for instances in (2, 3, 4):
        assert isinstance(job(SHAPE, instances), Hours)
    assert asked == ["t"]


def test_mig_slices_are_estimated_and_other_parts_of_cards_are_not() -> None:
    job = Job(Workload(model="resnet18", batch=16, optimizer="sgd"), steps=100, samples=None)
    shape = replace(SHAPE, gpu="A100-SXM4-80", gpu_share=0.4286, gpu_memory_bytes=40 << 30)
    part, whole = job(shape), job(replace(shape, gpu_share=1.0))
    assert isinstance(part, Hours)
    assert isinstance(whole, Hours)
    assert part.p50 > whole.p50
    assert isinstance(job(replace(shape, gpu_memory_bytes=7 << 30)), Misfit)


def test_global_batch_smaller_than_the_number_of_gpus_is_refused() -> None:
    job = Job(VGG, steps=100, samples=None, global_batch=2)
    shape = replace(SHAPE, gpu_count=2)
    assert isinstance(job(shape), Hours)
    for found in (job(replace(shape, gpu_count=4)), job(shape, 2)):
        assert isinstance(found, Misfit)
        assert found.code == "batch_too_small"


def test_tensor_parallel_hours_equal_the_estimate_and_groups_stay_in_one_machine() -> None:
    work = Workload(model="gpt2", batch=8, seq=512, optimizer="adamw")
    job = Job(work, steps=None, samples=100_000, tensor_parallel=2)
    question = Question(cards=all_cards(), gpus=4, tensor_parallel=2, samples=100_000)
    row = next(each for each in answer(work, question).gpus if each.gpu == "H100-SXM5")
    found = job(replace(SHAPE, gpu="H100-SXM5", gpu_count=4))
    assert isinstance(found, Hours)
    assert row.hours is not None
    assert (found.p10, found.p50, found.p90) == pytest.approx((row.hours.p10, row.hours.p50, row.hours.p90))
    alone = job(replace(SHAPE, gpu="H100-SXM5", gpu_count=1), 2)
    assert isinstance(alone, Misfit)
    assert alone.code == "tensor_parallel"
