"""Tensor parallelism: what each GPU holds and computes, compared to sums by hand."""

import pytest

from teraflock.base.errors import BadInput
from teraflock.catalog.cards import card
from teraflock.estimate.answer import answer
from teraflock.estimate.estimator import Estimator
from teraflock.estimate.model import Question
from teraflock.estimate.parallel import link_bytes_per_second
from teraflock.estimate.tensor_parallel import reduce_seconds
from teraflock.workload.model import Workload

GPT2 = Workload(model="gpt2", batch=2, seq=512, optimizer="adamw")
WIDTH, LAYERS, WORDS, POSITIONS = 768, 12, 50257, 1024


def parameters_on_each(ways: int) -> int:
    """Elements of GPT-2 on each GPU. The vocabulary is padded to a multiple."""
    matrices = 3 * WIDTH * WIDTH + WIDTH * WIDTH + 4 * WIDTH * WIDTH + 4 * WIDTH * WIDTH
    divided = LAYERS * (matrices + 3 * WIDTH + 4 * WIDTH) // ways + -(-WORDS // ways) * WIDTH
    whole = LAYERS * (2 * WIDTH + 4 * WIDTH) + 2 * WIDTH + POSITIONS * WIDTH
    return divided + whole


@pytest.mark.parametrize("ways", [2, 3, 4, 6])
def test_weights_and_optimizer_state_are_divided_except_norms_and_positions(ways: int) -> None:
    estimator = Estimator(GPT2, tensor_parallel=ways)
    assert estimator.gradient_bytes() == 4 * parameters_on_each(ways)
    parts = estimator.memory().breakdown  # whole blocks of the allocator: a little more
    assert parts["parameters"] == pytest.approx(4 * parameters_on_each(ways), rel=0.03)
    assert parts["optimizer"] == pytest.approx(8 * parameters_on_each(ways), rel=0.03)


@pytest.mark.parametrize("model", ["gpt2", "bert-large", "llama-1b", "opt-1.3b", "t5-base"])
def test_arithmetic_is_divided_and_memory_does_not_grow(model: str) -> None:
    work = Workload(model=model, batch=2, seq=512, optimizer="adamw")
    whole, half = (Estimator(work, tensor_parallel=ways) for ways in (1, 2))
    flops = [sum(each.flops for each in one.scene().step_works()) for one in (whole, half)]
    assert flops[1] == pytest.approx(flops[0] / 2, rel=0.001)
    peaks = [one.memory().live_peak_bytes for one in (whole, half)]
    assert peaks[0] / 2 < peaks[1] < 0.75 * peaks[0]


def test_activations_as_wide_as_the_hidden_state_stay_whole() -> None:
    """At least the inputs and outputs of two norms and two dropout masks of each GPT-2 layer in training."""
    tokens = 2 * 512
    least = LAYERS * tokens * WIDTH * (4 * 4 + 2)
    whole, eighth = (
        Estimator(GPT2, tensor_parallel=ways).memory().breakdown["activations"] for ways in (1, 6)
    )
    assert least < eighth
    assert eighth - least < 0.35 * (whole - least)


def test_two_all_reduces_per_layer_and_pass() -> None:
    here = card("H100-SXM5")  # 900 GB/s of NVLink: 450 each way, of which rings reach 70 %
    once = 2 * 3 / 4 * (2 * 512 * WIDTH * 4) / (450e9 * 0.7)
    assert here.nvlink_gbs == 900
    assert reduce_seconds(GPT2, here, 4) == pytest.approx(2 * 2 * LAYERS * once)
    infer = Workload(model="gpt2", batch=2, seq=512, task="infer")
    assert reduce_seconds(infer, here, 4) == pytest.approx(2 * LAYERS * once)


def test_amd_cards_have_one_link_to_each_other_card() -> None:
    mi300x, h100 = card("MI300X"), card("H100-SXM5")
    assert link_bytes_per_second(mi300x, 8) == 7 * link_bytes_per_second(mi300x, 2)
    assert link_bytes_per_second(h100, 8) == link_bytes_per_second(h100, 2)


def test_each_group_of_gpus_has_its_own_batch() -> None:
    cards = [card("H100-SXM5")]
    one = answer(GPT2, Question(cards=cards, gpus=2, tensor_parallel=2)).gpus[0]
    four = answer(GPT2, Question(cards=cards, gpus=8, tensor_parallel=2)).gpus[0]
    assert one.step_seconds is not None
    assert one.samples_per_second == pytest.approx(2 / one.step_seconds.p50)
    assert four.step_seconds is not None
    assert four.samples_per_second == pytest.approx(8 / four.step_seconds.p50)
    assert "computed, not measured" in one.evidence


@pytest.mark.parametrize(
    ("model", "ways", "why"),
    [
        ("resnet50", 2, "transformer blocks"),
        ("gpt2-xl", 2, "25 attention heads"),
        ("qwen2-0.5b", 7, "2 key and value heads"),
        ("gpt2", 9, "2 to 8 GPUs"),
    ],
)
def test_an_indivisible_model_is_refused(model: str, ways: int, why: str) -> None:
    with pytest.raises(BadInput, match=why):
        Estimator(Workload(model=model, batch=2, optimizer="sgd"), tensor_parallel=ways)
