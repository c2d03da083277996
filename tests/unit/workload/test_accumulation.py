"""Gradient accumulation: what stays in memory between passes, and what that costs."""

from collections import Counter

import pytest

from teraflock.base.errors import BadInput
from teraflock.estimate.estimator import Estimator, step_of
from teraflock.estimate.speed import PEAKS_H200
from teraflock.workload.accumulation import accumulated
from teraflock.workload.model import Workload, checked
from teraflock.workload.trace import EVENT_KINDS, EventKind
from teraflock.workload.zoo import trace_for

WORDS = {"model": "bert-base-uncased", "batch": 8, "seq": 128, "optimizer": "adamw", "precision": "fp32"}


def estimator(**words: object) -> Estimator:
    return Estimator(Workload(**{**WORDS, **words}))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("words", "measured"),
    [
        ({"model": "bert-large-uncased", "precision": "amp-bf16", "batch": 16, "seq": 512}, 17198613504),
        ({"batch": 32}, 5950354432),
        ({"model": "vit-large-patch16-224", "precision": "amp-bf16", "batch": 64, "seq": None}, 18364740608),
        ({"model": "clip-vit-base-patch32", "precision": "amp-bf16", "batch": 128, "seq": 77}, 8817544192),
        ({"model": "bart-large", "precision": "amp-bf16", "batch": 8, "seq": 512}, 15095980544),
        ({"model": "whisper-small", "precision": "amp-bf16", "batch": 16}, 18130014720),
        ({"model": "phi-2", "precision": "bf16", "batch": 2, "seq": 1024}, 32653700096),
        ({"model": "phi-3-mini", "precision": "bf16", "batch": 2, "seq": 1024}, 41820310528),
    ],
)
def test_live_peak_with_accumulation_is_as_measured_on_an_h200(
    words: dict[str, object], measured: int
) -> None:
    peak = estimator(**words, accumulate=3).memory().live_peak_bytes
    assert peak == pytest.approx(measured, rel=0.01)


def test_every_gradient_is_added_and_freed_once() -> None:
    trace = trace_for(Workload(**WORDS))  # type: ignore[arg-type]
    found = accumulated(trace)
    assert found.kinds.count("g") == 2 * trace.kinds.count("g")
    born: list[int] = []
    freed: Counter[int] = Counter()
    for event in found.events:
        kind, argument = event % EVENT_KINDS, event // EVENT_KINDS
        if kind == EventKind.ALLOCATE:
            born.append(argument)
        elif kind == EventKind.FREE:
            freed[len(born) - argument] += 1
    assert max(freed.values()) == 1
    assert sum(found.kinds[number] == "g" for number in freed) == trace.kinds.count("g")
    assert len(found.kinds) == len(born)


def test_time_grows_with_passes_and_the_optimizer_runs_once() -> None:
    seconds = []
    for passes in (2, 3, 4):
        made = estimator(accumulate=passes)
        seconds.append(step_of(made, made.scene()).seconds(PEAKS_H200))
    assert seconds[2] - seconds[1] == pytest.approx(seconds[1] - seconds[0])
    made = estimator(accumulate=2)
    low, high = step_of(made, made.scene()).interval(PEAKS_H200)
    assert low < seconds[0] < high
    alone = estimator(optimizer="none")
    assert seconds[1] - seconds[0] == pytest.approx(
        step_of(alone, alone.scene()).seconds(PEAKS_H200), rel=0.25
    )


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ({"accumulate": 0}, "accumulated passes"),
        ({"task": "infer", "accumulate": 2}, "applies to training"),
        ({"lora_targets": "all"}, "needs `--lora-rank`"),
        ({"lora_targets": "knees", "lora_rank": 8}, "LoRA targets"),
        ({"load_in": "4bit"}, "cannot be trained"),
        ({"load_in": "3bit", "lora_rank": 8}, "size of weights"),
        ({"load_in": "4bit", "lora_rank": 8, "compile": True}, "does not apply to quantized weights"),
        ({"lora_dtype": "fp32"}, "needs `--lora-rank`"),
        ({"lora_dtype": "fp7", "lora_rank": 8}, "type of LoRA matrices"),
        ({"precision": "fp8", "lora_rank": 8}, "FP8 is estimated for training of all weights"),
        ({"precision": "fp8", "task": "infer"}, "FP8 is estimated for training of all weights"),
    ],
)
def test_words_that_do_not_go_together_are_refused(words: dict[str, object], says: str) -> None:
    with pytest.raises(BadInput, match=says):
        checked(Workload(**{**WORDS, **words}))  # type: ignore[arg-type]


def test_weights_of_four_bits_take_a_quarter() -> None:
    words = {"model": "llama-3.1-8b", "batch": 1, "seq": 512, "precision": "bf16", "lora_rank": 16,
             "lora_targets": "all", "gradient_checkpointing": True}  # fmt: skip
    whole = estimator(**words).memory().breakdown
    small = estimator(**words, load_in="4bit").memory().breakdown
    linear = 32 * (2 * 4096 * 4096 + 2 * 4096 * 1024 + 3 * 4096 * 14336)
    saved = whole["parameters"] - small["parameters"] - small.get("buffers", 0) + whole.get("buffers", 0)
    assert saved == pytest.approx(linear * (2 - 0.5 - 1 / 64 - 4 / 64 / 256), rel=0.002)


def test_lora_on_all_layers_trains_what_peft_would() -> None:
    rank = 16
    trace = estimator(
        model="llama-3.1-8b",
        precision="bf16",
        lora_rank=rank,
        lora_targets="all",
        gradient_checkpointing=True,
    )
    trained = sum(shape[0] * shape[1] for shape, _ in trace.scene().parameter_sizes())
    per_layer = 2 * (4096 + 4096) + 2 * (4096 + 1024) + 3 * (4096 + 14336)
    assert trained == 32 * rank * per_layer == 41_943_040


def test_optimizers_of_eight_bits_keep_a_quarter_of_the_state() -> None:
    words = {"model": "llama-3.2-1b", "batch": 1, "seq": 128, "precision": "bf16"}
    state = {
        name: estimator(**words, optimizer=name).memory().breakdown.get("optimizer", 0)
        for name in ("adamw", "adamw-8bit", "paged-adamw-8bit")
    }
    assert state["adamw-8bit"] / state["adamw"] == pytest.approx(0.5 + 4 / 256 / 2, rel=0.01)
    assert state["paged-adamw-8bit"] == 0
