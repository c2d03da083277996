"""The quick ways give the answers of the thorough ones: the bare replay, and the survey of all cards."""

from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from teraflock.catalog.cards import all_cards
from teraflock.estimate.allocator import OutOfMemory
from teraflock.estimate.answer import Estimator, Question, answer
from teraflock.estimate.cards import refuses
from teraflock.estimate.fitting import fits_within
from teraflock.estimate.memory import Scene, replay
from teraflock.estimate.survey import Survey
from teraflock.workload.model import Workload

WORKLOADS = {
    "images": Workload(model="resnet18", batch=64, optimizer="sgd"),
    "dense": Workload(model="densenet121", batch=32, optimizer="adam"),
    "text": Workload(model="bert-base", batch=8, seq=128, precision="amp-bf16", optimizer="adamw"),
    "factored": Workload(model="gpt2", batch=2, seq=256, optimizer="adafactor"),
    "inference": Workload(model="gpt2", batch=4, precision="fp16", task="infer", kv_cache=True),
    "lora": Workload(model="llama-1b", batch=2, precision="bf16", optimizer="adamw", lora_rank=64),
}


@cache
def estimator(name: str) -> Estimator:
    return Estimator(WORKLOADS[name])


@cache
def roomy_bytes(name: str, batch: int, lean: bool) -> int:
    made = estimator(name)
    return replay(
        _scene(name, batch, lean), made.optimizer, cublas_bytes=made.cublas_bytes
    ).reserved_peak_bytes


def _scene(name: str, batch: int, lean: bool) -> Scene:
    return estimator(name).lean_scene(batch) if lean else estimator(name).scene(batch)


@settings(max_examples=60, deadline=None)
@given(
    name=st.sampled_from(sorted(WORKLOADS)),
    batch=st.sampled_from([1, 2, 3]),
    lean=st.booleans(),
    share=st.floats(0.3, 1.1),
)
def test_a_bare_replay_fits_where_the_whole_one_does(name: str, batch: int, lean: bool, share: float) -> None:
    made, limit = estimator(name), int(share * roomy_bytes(name, batch, lean))
    try:
        replay(_scene(name, batch, lean), made.optimizer, cublas_bytes=made.cublas_bytes, limit_bytes=limit)
        fits = True
    except OutOfMemory:
        fits = False
    scene = _scene(name, batch, lean)
    assert fits_within(scene, made.optimizer, cublas_bytes=made.cublas_bytes, limit_bytes=limit) == fits


def test_a_lean_scene_is_one_whose_convolutions_take_no_workspace() -> None:
    for name in WORKLOADS:
        whole, lean = estimator(name).scene(2), estimator(name).lean_scene(2)
        without = [
            0 if work.family.startswith("conv") else size
            for work, size in zip(whole.works, whole.workspaces, strict=True)
        ]
        assert (lean.sizes, lean.workspaces, lean.matmuls) == (whole.sizes, without, whole.matmuls)


@pytest.mark.parametrize("name", sorted(WORKLOADS))
@pytest.mark.parametrize("gpus", [1, 2])
def test_a_survey_says_of_each_card_what_the_answer_says(name: str, gpus: int) -> None:
    workload = WORKLOADS[name]
    survey = Survey(workload, all_cards())
    by_id = {row.gpu: row for row in answer(workload, Question(cards=all_cards(), gpus=gpus)).gpus}
    for card in all_cards():
        row, fit = by_id[card.id], survey.fit(card, shared=gpus > 1)
        if refuses(card, workload.precision):
            continue
        assert fit.fits == row.fits
        assert fit.missing_bytes == (0 if row.fits else max(0, row.need_bytes - row.memory_bytes))
        if gpus == 1:
            assert survey.seconds(card) == row.step_seconds
