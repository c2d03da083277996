"""Models by their config: no PyTorch, no weights, and the same answers as recorded models and published counts."""

import json
from math import prod
from pathlib import Path

import pytest

from teraflock.base.errors import BadInput, UnknownName
from teraflock.estimate.estimator import Estimator
from teraflock.workload import zoo
from teraflock.workload.config import named
from teraflock.workload.expression import evaluate_all
from teraflock.workload.model import Workload, is_trace

LLAMA = {
    "model_type": "llama",
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "vocab_size": 128256,
    "max_position_embeddings": 131072,
    "rope_scaling": {"type": "llama3"},
    "architectures": ["LlamaForCausalLM"],
}


def parameters(model: str) -> int:
    workload = zoo.with_sizes(Workload(model=model, batch=1, precision="bf16", optimizer="adamw"))
    trace = zoo.trace_for(workload)
    sizes = evaluate_all(trace.expressions, zoo.symbols_for(workload, trace))
    return sum(prod(sizes[index] for index in each.shape) for each in trace.parameters)


@pytest.mark.parametrize(
    ("model", "published"),
    [
        ("llama-2-7b", 6_738_415_616),
        ("llama-3.1-8b", 8_030_261_248),
        ("llama-3.1-70b", 70_553_706_496),
        ("llama-3.2-1b", 1_235_814_400),
        ("llama-3.2-3b", 3_212_749_824),
        ("mistral-7b", 7_248_023_552),
        ("qwen2.5-0.5b", 494_032_768),
        ("qwen2.5-7b", 7_615_616_512),
        ("qwen3-0.6b", 596_049_920),
        ("qwen3-8b", 8_190_735_360),
        ("tinyllama-1.1b", 1_100_048_384),
    ],
)
def test_a_named_model_has_as_many_parameters_as_was_published(model: str, published: int) -> None:
    assert parameters(model) == published


@pytest.mark.parametrize(
    ("by_config", "recorded", "words"),
    [
        ("llama-3.2-1b", "llama-1b", {"precision": "fp32"}),
        ("llama-3.2-1b", "llama-1b", {"precision": "amp-bf16", "gradient_checkpointing": True}),
        ("llama-3.2-3b", "llama-3b", {"precision": "bf16"}),
        ("llama-3.1-8b", "llama-8b", {"precision": "bf16", "lora_rank": 16}),
        ("llama-3.1-8b", "llama-8b", {"precision": "bf16", "task": "infer"}),
        ("qwen2.5-0.5b", "qwen2-0.5b", {"precision": "amp-bf16"}),
    ],
)
def test_a_config_answers_as_the_recorded_model_does(
    by_config: str, recorded: str, words: dict[str, object]
) -> None:
    peaks = []
    for model in (by_config, recorded):
        options = {"model": model, "batch": 2, "seq": 512, "optimizer": "adamw", **words}
        peaks.append(Estimator(Workload(**options)).memory().live_peak_bytes)  # type: ignore[arg-type]
    assert peaks[0] == pytest.approx(peaks[1], rel=0.005)


def test_a_config_file_is_a_model(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(LLAMA))
    assert parameters(str(path)) == 8_030_261_248
    assert zoo.entry(str(path)).seq_max == 131072


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"model_type": "gemma2"}, "`gemma2` are not supported"),
        ({"model_type": None}, "not supported"),
        ({"hidden_size": "wide"}, "not complete"),
        ({"hidden_size": 0}, "a width is not a number"),
        ({"head_dim": 256}, "heads of 256"),
        ({"num_key_value_heads": 7}, "cannot share"),
        ({"num_hidden_layers": 1}, "of 1 layer is not supported"),
    ],
)
def test_a_config_that_cannot_be_taken_is_refused_in_one_sentence(
    changed: dict[str, object], says: str, tmp_path: Path
) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps({**LLAMA, **changed}))
    with pytest.raises(BadInput, match=says):
        parameters(str(path))


@pytest.mark.parametrize("text", ["", "{", "[]", '"llama"', "\x00"])
def test_what_is_no_config_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(text)
    with pytest.raises(BadInput, match="is not a Hugging Face config"):
        parameters(str(path))


@pytest.mark.parametrize(
    "name", ["meta-llama/Llama-3.1-8B", "meta-llama/Llama-3.1-8B-Instruct", "LLAMA_3.1_8b", "llama-3.1-8b"]
)
def test_a_model_is_found_as_the_hub_writes_it(name: str) -> None:
    assert not is_trace(name)
    assert zoo.entry(name).name == "llama-3.1-8b"


def test_an_unknown_name_says_how_to_go_on() -> None:
    with pytest.raises(UnknownName) as caught:
        zoo.entry("acme/own-7b")
    assert "tera trace" in caught.value.hint
    assert "config.json" in caught.value.hint


@pytest.mark.parametrize("model", sorted(named()))
def test_every_named_model_answers(model: str) -> None:
    assert zoo.entry(model).config is not None
    peak = Estimator(Workload(model=model, task="infer", batch=1, seq=128, precision="bf16")).memory()
    assert peak.live_peak_bytes >= 2 * parameters(model)
