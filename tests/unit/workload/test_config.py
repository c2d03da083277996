"""Models by their config: no PyTorch, no weights, and the same answers as recorded models and published counts."""

import json
from math import prod
from pathlib import Path

import pytest

from teraflock.base.errors import BadInput, UnknownName
from teraflock.estimate.answer import answer
from teraflock.estimate.estimator import Estimator
from teraflock.estimate.model import Question
from teraflock.workload import zoo
from teraflock.workload.config import FAMILIES, named
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
        ("bert-base-uncased", 109_514_298),
        ("roberta-large", 355_412_057),
        ("xlm-roberta-base", 278_295_186),
        ("vit-base-patch16-224", 86_567_656),
        ("vit-huge-patch14-224", 632_045_800),
        ("clip-vit-base-patch32", 151_277_313),
        ("clip-vit-large-patch14-336", 427_944_193),
        ("t5-small", 60_506_624),
        ("t5-3b", 2_851_598_336),
        ("flan-t5-base", 247_577_856),
        ("flan-t5-xxl", 11_135_332_352),
        ("bart-base", 139_420_416),
        ("bart-large", 406_291_456),
        ("whisper-tiny", 37_760_640),
        ("whisper-large-v3", 1_543_490_560),
        ("whisper-large-v3-turbo", 808_878_080),
        ("mixtral-8x7b", 46_702_792_704),
        ("mixtral-8x22b", 140_630_071_296),
        ("qwen1.5-moe-a2.7b", 14_315_784_192),
        ("qwen3-30b-a3b", 30_532_122_624),
        ("qwen3-235b-a22b", 235_093_634_560),
        ("gemma-2b", 2_506_172_416),
        ("gemma-7b", 8_537_680_896),
        ("gemma-2-9b", 9_241_705_984),
        ("gemma-2-27b", 27_227_128_320),
        ("gemma-3-1b", 999_885_952),
        ("phi-2", 2_779_683_840),
        ("phi-3-mini", 3_821_079_552),
        ("phi-4", 14_659_507_200),
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
        ("bert-base-uncased", "bert-base", {"precision": "amp-bf16"}),
        ("bert-large-uncased", "bert-large", {"precision": "fp32"}),
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
        ({"model_type": "mamba"}, "`mamba` are not supported"),
        ({"model_type": None}, "not supported"),
        ({"hidden_size": "wide"}, "`hidden_size` is not a number"),
        ({"hidden_size": 0}, "`hidden_size` is not a number"),
        ({"hidden_size": True}, "`hidden_size` is not a number"),
        ({"vocab_size": None}, "has no `vocab_size`"),
        ({"num_hidden_layers": 1 << 20}, "`num_hidden_layers` is not a number"),
        ({"attention_bias": True}, "`attention_bias` of True is not supported"),
        ({"model_type": "phi3", "partial_rotary_factor": 0.75}, "`partial_rotary_factor`"),
        ({"model_type": "mixtral", "num_experts_per_tok": 9, "num_local_experts": 8}, "9 of 8 experts"),
        ({"model_type": "mixtral"}, "has no `num_experts"),
        ({"model_type": "t5", "feed_forward_proj": "gated-silu"}, "`feed_forward_proj` of gated-silu"),
        ({"model_type": "vit", "image_size": 225}, "patches of 16 pixels cannot cover"),
        ({"model_type": "bert", "hidden_size": 770, "num_attention_heads": 12}, "cannot divide 770"),
        ({"model_type": "whisper", "max_source_positions": 750}, "`max_source_positions`"),
        ({"head_dim": 256}, "heads with 256"),
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
    assert zoo.entry(model).shape is not None
    peak = Estimator(Workload(model=model, task="infer", batch=1, precision="bf16")).memory()
    assert peak.live_peak_bytes >= 2 * parameters(model)


@pytest.mark.parametrize(
    ("model", "words", "says"),
    [
        ("bert-large-uncased", {"task": "infer", "kv_cache": True}, "has no KV cache"),
        ("vit-base-patch16-224", {"image_size": 384}, "accepts only images of 224 pixels"),
        ("vit-base-patch16-224", {"seq": 128}, "processes images"),
        ("clip-vit-base-patch32", {"seq": 128}, "has 77 positions"),
        ("whisper-small", {"seq": 512}, "has 448 positions"),
    ],
)
def test_what_a_model_cannot_do_is_refused(model: str, words: dict[str, object], says: str) -> None:
    workload = Workload(**{"model": model, "batch": 1, "optimizer": "adamw", "precision": "bf16", **words})  # type: ignore[arg-type]
    with pytest.raises(BadInput, match=says):
        zoo.check(workload)


def test_kv_cache_of_whisper_counts_what_it_heard() -> None:
    words = {"model": "whisper-large-v3", "task": "infer", "precision": "bf16", "kv_cache": True}
    held = Estimator(Workload(**words, batch=4, seq=448)).kv_cache_bytes()  # type: ignore[arg-type]
    assert held == 4 * 2 * 2 * 32 * 1280 * (448 + 1500)


def test_every_family_that_a_config_can_name_is_recorded() -> None:
    families = {each.name.partition("+")[0] for each in Path(FAMILIES).iterdir()}
    assert {zoo.entry(each).shape.family for each in named()} <= families  # type: ignore[union-attr]


BERT = {"model_type": "bert", "vocab_size": 30522}


@pytest.mark.parametrize(
    ("data", "named_head"),
    [
        (BERT, ""),
        ({**BERT, "architectures": ["BertForMaskedLM"]}, ""),
        ({**BERT, "architectures": ["BertForPreTraining"]}, ""),
        ({**BERT, "architectures": []}, ""),
        ({**BERT, "architectures": "BertForSequenceClassification"}, ""),
        ({**BERT, "architectures": [7]}, ""),
        ({**BERT, "architectures": ["a `tick` ForSequenceClassification"]}, ""),
        ({**BERT, "architectures": ["BertForSequenceClassification"]}, "BertForSequenceClassification"),
        ({**BERT, "architectures": ["BertModel"]}, "BertModel"),
        ({**BERT, "architectures": ["BertForNextSentencePrediction"]}, "BertForNextSentencePrediction"),
        (LLAMA, ""),
        ({**LLAMA, "architectures": ["LlamaForTokenClassification"]}, "LlamaForTokenClassification"),
    ],
)
def test_another_head_than_the_recorded_one_is_said(
    data: dict[str, object], named_head: str, tmp_path: Path
) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(data))
    note = zoo.head_note(str(path))
    assert note.startswith(f"the config is of {named_head}, ") if named_head else not note
    found = answer(
        Workload(model=str(path), batch=1, seq=16, precision="bf16", optimizer="adamw"), Question()
    )
    assert (note in found.assumptions) == bool(named_head)


def test_public_models_have_the_head_that_was_recorded() -> None:
    assert [name for name in (*zoo.ENTRIES, *named()) if zoo.head_note(name)] == []
