"""Models by their config: no PyTorch, no weights, and the same answers as recorded models and published counts."""

import contextlib
import json
from math import prod
from pathlib import Path
from typing import Any

import pytest

from teraflock.base.errors import BadInput, UnknownName
from teraflock.catalog.cards import card
from teraflock.estimate.answer import answer
from teraflock.estimate.estimator import Estimator, step_of
from teraflock.estimate.model import Question
from teraflock.estimate.serving import Load, serve
from teraflock.estimate.speed import PEAKS_H200
from teraflock.estimate.step import OWN
from teraflock.workload import zoo
from teraflock.workload.architecture import READERS, shape_of
from teraflock.workload.config import FAMILIES, named
from teraflock.workload.expression import evaluate_all
from teraflock.workload.hub import OTHER_NAMES
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
        ("distilgpt2", 81_912_576),
        ("opt-125m", 125_239_296),
        ("opt-350m", 331_196_416),
        ("opt-6.7b", 6_658_473_984),
        ("opt-13b", 12_853_473_280),
        ("pythia-160m", 162_322_944),
        ("pythia-1b", 1_011_781_632),
        ("pythia-6.9b", 6_857_302_016),
        ("pythia-12b", 11_846_072_320),
        ("olmo-7b", 6_888_095_744),
        ("olmo-2-7b", 7_298_617_344),
        ("olmo-2-32b", 32_234_279_936),
        ("starcoder2-3b", 3_030_371_328),
        ("starcoder2-15b", 15_957_889_024),
        ("starcoder", 15_517_456_384),
        ("falcon-7b", 6_921_720_704),
        ("falcon-40b", 41_303_293_952),
        ("command-r", 34_980_831_232),
        ("command-r-plus", 103_810_674_688),
        ("granite-3.1-2b", 2_533_531_648),
        ("granite-3.1-8b", 8_170_848_256),
        ("stablelm-2-1.6b", 1_644_515_328),
        ("stablelm-3b-4e1t", 2_795_443_200),
        ("deepseek-v2-lite", 15_706_484_224),
        ("deepseek-v2", 235_741_434_880),
        # Without the 14,848 corrections of experts, which are no parameters in transformers.
        ("deepseek-v3", 671_026_419_200 - 58 * 256),
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


GPT2 = {"model_type": "gpt2", "n_positions": 1024, "vocab_size": 50257}
OPT = {
    "model_type": "opt", "hidden_size": 2048, "num_hidden_layers": 24, "num_attention_heads": 32, "ffn_dim": 8192,
    "vocab_size": 50272, "max_position_embeddings": 2048, "word_embed_proj_dim": 2048,
}  # fmt: skip


@pytest.mark.parametrize(
    ("recorded", "config"),
    [
        ("gpt2", {**GPT2, "n_embd": 768, "n_layer": 12, "n_head": 12}),
        ("gpt2-medium", {**GPT2, "n_embd": 1024, "n_layer": 24, "n_head": 16}),
        ("gpt2-xl", {**GPT2, "n_embd": 1600, "n_layer": 48, "n_head": 25}),
        ("opt-1.3b", OPT),
    ],
)
@pytest.mark.parametrize(
    "words",
    [
        {"precision": "amp-bf16"},
        {"precision": "bf16", "gradient_checkpointing": True},
        {"precision": "fp32"},
        {"precision": "bf16", "task": "infer"},
    ],
)
def test_a_config_of_a_model_of_the_zoo_has_its_numbers(
    recorded: str, config: dict[str, object], words: dict[str, object], tmp_path: Path
) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(config))
    peaks, seconds = [], []
    for model in (str(path), recorded):
        options = {"model": model, "batch": 8, "seq": 1024, "optimizer": "adamw", **words}
        estimator = Estimator(Workload(**options))  # type: ignore[arg-type]
        peaks.append(estimator.memory().live_peak_bytes)
        seconds.append(step_of(estimator, estimator.scene(), host=OWN).seconds(PEAKS_H200))
    assert peaks[0] == pytest.approx(peaks[1], rel=0.002)
    assert seconds[0] == pytest.approx(seconds[1], rel=0.01)


def test_a_config_file_is_a_model(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(LLAMA))
    assert parameters(str(path)) == 8_030_261_248
    assert zoo.entry(str(path)).seq_max == 131072


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"model_type": "mamba"}, "`mamba` are not supported"),
        ({"model_type": None}, "has no `model_type`"),
        ({"hidden_act": "relu2"}, "`hidden_act` of relu2 is not supported"),
        ({"mlp_bias": True}, "`mlp_bias` of True is not supported"),
        ({"tie_word_embeddings": "yes"}, "`tie_word_embeddings` is neither true nor false"),
        (
            {"model_type": "bert", "num_attention_heads": 32, "hidden_act": "gelu_new"},
            "`hidden_act` of gelu_new",
        ),
        ({"model_type": "clip", "vision_config": {"hidden_act": "gelu"}}, "`hidden_act` of gelu "),
        ({"hidden_size": "wide"}, "`hidden_size` is not a number"),
        ({"hidden_size": 0}, "`hidden_size` is not a number"),
        ({"hidden_size": True}, "`hidden_size` is not a number"),
        ({"vocab_size": None}, "has no `vocab_size`"),
        ({"num_hidden_layers": 1 << 20}, "`num_hidden_layers` is not a number"),
        ({"attention_bias": True}, "`attention_bias` of True is not supported"),
        ({"model_type": "phi3", "partial_rotary_factor": 0.75}, "`partial_rotary_factor`"),
        ({"model_type": "mixtral", "num_experts_per_tok": 9, "num_local_experts": 8}, "9 of 8 experts"),
        ({"model_type": "mixtral"}, "has no `num_local_experts"),
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


@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("openai-community/gpt2", "gpt2"),
        ("google-t5/t5-base", "t5-base"),
        ("FacebookAI/roberta-base", "roberta-base"),
        ("distilbert/distilbert-base-uncased", "distilbert"),
        ("facebook/opt-1.3b", "opt-1.3b"),
        ("microsoft/resnet-50", "resnet50"),
        ("google/vit-base-patch16-224-in21k", "vit-base-patch16-224"),
        ("stabilityai/stable-diffusion-xl-base-1.0", "unet-diffusion-sdxl"),
        ("mistralai/Mistral-7B-Instruct-v0.3", "mistral-7b"),
        ("mistralai/Mixtral-8x7B-Instruct-v0.1", "mixtral-8x7b"),
        ("meta-llama/Llama-2-13b-chat-hf", "llama-2-13b"),
        ("meta-llama/Meta-Llama-3-8B-Instruct", "llama-3-8b"),
        ("Qwen/Qwen2.5-Coder-7B-Instruct", "qwen2.5-7b"),
        ("Qwen/Qwen3-4B-Instruct-2507", "qwen3-4b"),
        ("microsoft/Phi-3-mini-4k-instruct", "phi-3-mini"),
        ("microsoft/phi-1_5", "phi-1.5"),
        ("google/gemma-3-4b-it", "gemma-3-4b"),
        ("TinyLlama/TinyLlama-1.1B-Chat-v1.0", "tinyllama-1.1b"),
        ("deepseek-ai/deepseek-coder-6.7b-instruct", "deepseek-coder-6.7b"),
        ("Wide_ResNet50_2", "wide_resnet50_2"),
    ],
)
def test_models_of_hubs_are_found_with_their_owner_and_tuning(name: str, model: str) -> None:
    assert zoo.entry(name).name == model


def test_another_name_leads_to_a_model_that_there_is() -> None:
    assert {*OTHER_NAMES.values()} <= {*zoo.known_names()}
    assert not {*OTHER_NAMES} & {*zoo.known_names()}


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
    notes = zoo.config_notes(str(path))
    assert [each.startswith(f"the config is of {named_head}, ") for each in notes] == [True] * bool(
        named_head
    )
    found = answer(
        Workload(model=str(path), batch=1, seq=16, precision="bf16", optimizer="adamw"), Question()
    )
    assert found.assumptions[: len(notes)] == notes


def test_public_models_have_the_head_that_was_recorded() -> None:
    noted = [name for name in (*zoo.ENTRIES, *named()) if zoo.config_notes(name)]
    assert noted == ["gemma-3-12b", "gemma-3-4b"]  # of which only the text model is recorded


DEEPSEEK = dict(named()["deepseek-v3"])


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({**LLAMA, "quantization_config": {"quant_method": "awq"}}, "has quantized weights (awq)"),
        ({**LLAMA, "quantization_config": {"quant_method": ["x"]}}, "has quantized weights, but"),
        ({**GPT2, "resid_pdrop": 0.0}, "has no dropout (`resid_pdrop`)"),
        ({**OPT, "attention_dropout": 0.1}, "has dropout (`attention_dropout`)"),
        ({**LLAMA, "model_type": "mistral", "sliding_window": 256}, "limits attention to 256 tokens"),
        ({**LLAMA, "model_type": "mistral", "sliding_window": None}, ""),
        ({**LLAMA, "model_type": "mistral", "sliding_window": 512}, ""),
        ({**LLAMA, "model_type": "mistral"}, ""),
        ({**LLAMA, "model_type": "qwen2", "use_sliding_window": False, "sliding_window": 256}, ""),
    ],
)
def test_what_the_estimate_leaves_out_of_a_config_is_said(
    data: dict[str, object], words: str, tmp_path: Path
) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(data))
    notes = zoo.config_notes(str(path), 512)
    assert len(notes) == bool(words)
    assert all(words in each for each in notes)


@pytest.mark.parametrize(
    ("data", "says"),
    [
        ({**GPT2, "n_head": 7}, "7 heads cannot divide 768"),
        ({**GPT2, "n_head": 0}, "`n_head` is not a number"),
        ({**GPT2, "activation_function": "relu"}, "`activation_function` of relu"),
        ({**OPT, "do_layer_norm_before": False}, "`do_layer_norm_before` of False"),
        ({**DEEPSEEK, "first_k_dense_replace": 61}, "61 dense layers leave no layer"),
        ({**DEEPSEEK, "n_group": 7}, "cannot be divided into 7 groups"),
        ({**DEEPSEEK, "topk_group": 9}, "8 of 256 experts cannot be chosen from 9 of 8 groups"),
        ({**DEEPSEEK, "qk_rope_head_dim": 8, "qk_nope_head_dim": 8}, "keys of 16"),
        ({**DEEPSEEK, "q_lora_rank": None}, "`q_lora_rank` of null"),
        ({"model_type": "gpt_neox", "rotary_pct": 1.0}, "rotary embeddings of 96 of 96"),
        ({"model_type": "gpt_neox", "rotary_pct": "some"}, "`rotary_pct` is not a number"),
        ({"model_type": "falcon", "alibi": True}, "`alibi` of True"),
        (
            {"model_type": "gemma3", "text_config": {"model_type": "gemma3_text"}},
            "save `text_config`|also reads",
        ),
        ({"model_type": ["gpt2"]}, "not supported"),
    ],
)
def test_an_odd_config_is_refused_in_one_sentence(data: dict[str, object], says: str, tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(data))
    with pytest.raises(BadInput, match=says):
        parameters(str(path))


ODD: tuple[Any, ...] = (
    None, 0, -1, 1, 7, 3.5, 1 << 40, True, False, "", "wide", [], [1], {}, {"a": 1}, "x" * 10_000,
)  # fmt: skip


@pytest.mark.parametrize("kind", sorted(READERS))
def test_no_config_ends_in_a_traceback(kind: str) -> None:
    """Each field of a public model of this kind, with each odd value: an answer or one sentence."""
    usual = next((each for each in named().values() if each["model_type"] == kind), {"model_type": kind})
    for field in (
        *usual,
        "architectures",
        "quantization_config",
        "rope_parameters",
        "rope_scaling",
        "text_config",
    ):
        for value in ODD:
            with contextlib.suppress(BadInput):
                shape_of({**usual, field: value}, "config.json")


def test_serving_deepseek_is_refused() -> None:
    workload = Workload(model="deepseek-v3", task="infer", batch=1, precision="bf16")
    with pytest.raises(BadInput, match="latent vectors"):
        serve(workload, Load(users=4, context=4096), [])


@pytest.mark.parametrize("model", ["pythia-6.9b", "olmo-2-7b", "starcoder2-3b", "falcon-7b", "opt-6.7b"])
def test_new_decoders_are_served(model: str) -> None:
    workload = Workload(model=model, task="infer", batch=1, precision="bf16")
    found = serve(workload, Load(users=4, context=1024), [card("H200-SXM")])
    assert found.weights_bytes >= 2 * parameters(model)
    assert found.gpus[0].fits
    assert 0 < found.gpus[0].tokens_per_second_per_user < 10_000  # type: ignore[operator]
