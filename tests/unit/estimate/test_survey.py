"""A survey agrees with the full answer."""

from functools import cache
from pathlib import Path

import pytest
from tests.unit.estimate.test_batch import WORKLOADS

from teraflock.catalog.cards import all_cards, card
from teraflock.estimate.answer import answer
from teraflock.estimate.cards import refuses
from teraflock.estimate.estimator import Estimator
from teraflock.estimate.model import Question
from teraflock.estimate.survey import Survey
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


@cache
def estimator(name: str) -> Estimator:
    return Estimator(WORKLOADS[name])


def test_convolutions_of_a_lean_scene_use_no_workspace() -> None:
    for name in WORKLOADS:
        whole, lean = estimator(name).scene(2), estimator(name).lean_scene(2)
        without = [
            0 if work.family.startswith("conv") else size
            for work, size in zip(whole.works, whole.workspaces, strict=True)
        ]
        assert (lean.sizes, lean.workspaces, lean.matmuls) == (whole.sizes, without, whole.matmuls)


@pytest.mark.parametrize("name", sorted(WORKLOADS))
@pytest.mark.parametrize("gpus", [1, 2])
def test_a_survey_agrees_with_the_answer_for_each_card(name: str, gpus: int) -> None:
    workload = WORKLOADS[name]
    survey = Survey(workload)
    by_id = {row.gpu: row for row in answer(workload, Question(cards=all_cards(), gpus=gpus)).gpus}
    for each in all_cards():
        row, fit = by_id[each.id], survey.fit(each, gpus)
        if refuses(each, workload.precision):
            continue
        assert fit.fits == row.fits
        assert fit.missing_bytes == (0 if row.fits else max(0, row.need_bytes - row.memory_bytes))
        if gpus == 1:
            assert survey.seconds(each) == row.step_seconds


@pytest.mark.parametrize("name", sorted(WORKLOADS))
def test_sharding_needs_less_memory_with_every_gpu(name: str) -> None:
    whole, sharded = (Survey(WORKLOADS[name], stage=each) for each in (0, 3))
    needs = [sharded.need_bytes(gpus) for gpus in (1, 2, 4, 8)]
    assert needs[0] == whole.need_bytes(1)
    assert needs == sorted(needs, reverse=True)
    assert all(needs[at] <= whole.need_bytes(gpus) for at, gpus in enumerate((1, 2, 4, 8)))
    assert needs[-1] > 0


SHARDED = [  # stage, GPUs, live peak in bytes on each, measured on an H200 with a fake process group
    (
        "gpt2-medium",
        4,
        "fp32",
        False,
        [(0, 2, 19_739_174_400), (1, 8, 17_311_524_352), (2, 8, 16_014_549_504)],
    ),
    (
        "bert-large",
        8,
        "amp-bf16",
        False,
        [(1, 2, 10_309_297_152), (2, 2, 9_639_170_048), (3, 8, 6_971_160_576)],
    ),
    ("llama-3b", 1, "bf16", True, [(1, 8, 22_523_425_280), (2, 2, 17_913_182_720), (3, 2, 16_145_807_360)]),
]


@pytest.mark.parametrize(("model", "batch", "precision", "checkpointing", "measured"), SHARDED)
def test_estimates_match_measured_peaks_of_ddp_and_zero(
    model: str, batch: int, precision: str, checkpointing: bool, measured: list[tuple[int, int, int]]
) -> None:
    workload = Workload(
        model=model,
        batch=batch,
        seq=512 if model == "bert-large" else 1024,
        precision=precision,
        optimizer="adamw",
        gradient_checkpointing=checkpointing,
    )
    for stage, gpus, live in measured:
        assert Survey(workload, stage=stage).need_bytes(gpus) == pytest.approx(live, rel=0.005)


def test_a_model_too_large_for_one_card_fits_sharded_over_eight() -> None:
    workload = Workload(model="llama-8b", batch=1, seq=512, precision="bf16", optimizer="adamw")
    whole, sharded = (Survey(workload, stage=each) for each in (0, 3))
    a100 = card("A100-SXM4-40")
    assert not whole.fit(a100, 8).fits
    assert not sharded.fit(a100, 1).fits
    assert sharded.fit(a100, 8).fits
    assert sharded.exchanged_bytes == pytest.approx(1.5 * 8.03e9 * 2, rel=0.02)


def test_sharding_splits_the_optimizer_temporaries() -> None:
    """16 bytes per parameter on 8 GPUs are 16 GB each. The temporaries of AdamW are 4 GB on each, not 32. Autocast
    keeps a copy of each layer's weights, 15 GB in total."""
    workload = Workload(
        model="llama-8b",
        batch=1,
        seq=2048,
        precision="amp-bf16",
        optimizer="adamw",
        gradient_checkpointing=True,
    )
    survey = Survey(workload, stage=3)
    for name in ("A100-SXM4-40", "L40S", "A6000"):
        assert survey.fit(card(name), 8).fits
    assert 18 < survey.need_bytes(8) / 2**30 < 36
    assert not survey.fit(card("RTX4090"), 2).fits


@pytest.mark.parametrize("name", ["dense", "text", "lora"])
def test_each_zero_stage_needs_no_more_than_the_previous(name: str) -> None:
    """Stage 2 holds a shard of the weights in addition to the weights. If those are frozen, it saves almost nothing."""
    stages = (0, 1, 3) if name == "lora" else (0, 1, 2, 3)
    needs = [Survey(WORKLOADS[name], stage=each).need_bytes(8) for each in stages]
    assert needs == sorted(needs, reverse=True)
    first, third = (Survey(WORKLOADS[name], stage=each).exchanged_bytes for each in (1, 3))
    assert name == "lora" or first < third


def test_sharding_splits_the_optimizer_state_of_a_trace(tmp_path: Path) -> None:
    """One layer of 4 GiB, its two AdamW states and equally large temporaries, all in one recorded trace."""
    weight, activation = 4 << 30, 1 << 28
    allocate, free, operate, mark = (int(each) for each in EventKind)
    events = [
        *(allocate + EVENT_KINDS * 0 for _ in "poo"),
        mark + EVENT_KINDS * int(Mark.STEP),
        allocate + EVENT_KINDS * 1,
        operate,
        mark + EVENT_KINDS * int(Mark.BACKWARD),
        allocate + EVENT_KINDS * 0,
        free + EVENT_KINDS * 2,
        mark + EVENT_KINDS * int(Mark.OPTIMIZER),
        allocate + EVENT_KINDS * 0,
        free + EVENT_KINDS * 1,
        mark + EVENT_KINDS * int(Mark.END),
    ]
    side = Tensor("f", [2])
    trace = Trace(
        name="one", torch="2", symbols={}, expressions=[weight, activation, weight // 4], events=events,
        operations=[TracedOperation("relu", [side], [side])], parameters=[Parameter([2], "f", True)], kinds="pooagt",
        has_optimizer=True, samples=1,
    )  # fmt: skip
    path = tmp_path / "one.trace"
    path.write_bytes(write_trace(trace))
    survey = Survey(Workload(model=str(path), batch=0), stage=3)
    assert survey.need_bytes(1) == pytest.approx(5 * weight, rel=0.01)
    # shards of an eighth, plus the only layer and its gradient whole
    assert survey.need_bytes(8) == pytest.approx(weight * (3 / 8 + 2) + activation, rel=0.01)
    assert survey.need_bytes(8) < survey.need_bytes(4) < survey.need_bytes(2) < survey.need_bytes(1)


def test_offload_frees_the_optimizer_state_and_takes_longer() -> None:
    workload = Workload(model="llama-1b", batch=1, seq=512, precision="amp-bf16", optimizer="adamw")
    whole, offloaded, split = (
        Survey(workload, stage=stage, offload=offload)
        for stage, offload in ((0, False), (0, True), (3, True))
    )
    state = 2 * 4 * 1_235_814_400
    assert whole.need_bytes(1) - offloaded.need_bytes(1) >= state
    assert split.need_bytes(8) < offloaded.need_bytes(8) < whole.need_bytes(8)
    a100 = card("A100-SXM4-80")
    assert whole.offload_seconds(a100, 1) == 0
    assert 0.3 < offloaded.offload_seconds(a100, 1) < 3
    assert split.offload_seconds(a100, 8) < offloaded.offload_seconds(a100, 8)


def test_copies_that_infer_exchange_nothing() -> None:
    workload = Workload(model="bert-large", task="infer", batch=32, seq=128, precision="fp16")
    plain, sharded = Survey(workload), Survey(workload, stage=3)
    assert plain.exchanged_bytes == 0
    assert plain.need_bytes(8) == plain.need_bytes(1)  # and have no gradient buckets
    assert sharded.exchanged_bytes == pytest.approx(0.5 * 335e6 * 2, rel=0.02)  # one gather of the weights
    one, eight = (
        answer(workload, Question(cards=[card("RTX4090")], gpus=gpus)).gpus[0].samples_per_second
        for gpus in (1, 8)
    )
    assert one
    assert eight == pytest.approx(8 * one)
