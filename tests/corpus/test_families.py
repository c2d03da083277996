"""A family that is expanded for a config does what a direct recording of that config does.

Each config has other widths and another depth than the recorded one. Operations with their shapes, parameters and the
live peak are equal. Needs PyTorch and transformers: no weights, no GPU.
"""

import os
from collections.abc import Iterator
from typing import Any

import pytest
from tests.corpus.declared import sitecustomize as _operators  # noqa: F401 -- before torchvision is imported

from teraflock.workload.architecture import shape_of
from teraflock.workload.config import config_trace
from teraflock.workload.expression import evaluate_all
from teraflock.workload.trace import EVENT_KINDS, EventKind, Mark, Tensor, Trace

torch = pytest.importorskip("torch", reason="PyTorch is not installed: `make corpus` runs these")
hf = pytest.importorskip("transformers", reason="transformers is not installed: `make corpus` runs these")

GPT = {
    "model_type": "gpt2",
    "n_embd": 640,
    "n_head": 10,
    "n_layer": 5,
    "vocab_size": 1000,
    "n_positions": 256,
}
OPT = {
    "model_type": "opt", "hidden_size": 512, "num_attention_heads": 8, "ffn_dim": 2048, "num_hidden_layers": 5,
    "vocab_size": 1000, "max_position_embeddings": 256, "word_embed_proj_dim": 512,
}  # fmt: skip
NEOX = {
    "model_type": "gpt_neox", "hidden_size": 512, "num_attention_heads": 8, "intermediate_size": 2048,
    "num_hidden_layers": 6, "vocab_size": 1000, "max_position_embeddings": 256,
}  # fmt: skip
LLAMA = {
    "hidden_size": 512, "num_attention_heads": 8, "intermediate_size": 1408, "num_hidden_layers": 5,
    "vocab_size": 1000, "max_position_embeddings": 256, "pad_token_id": 0,
}  # fmt: skip
FALCON = {
    "model_type": "falcon", "hidden_size": 448, "num_attention_heads": 7, "num_hidden_layers": 5, "vocab_size": 1000,
    "max_position_embeddings": 256,
}  # fmt: skip
BIGCODE = {
    "model_type": "gpt_bigcode", "n_embd": 512, "n_head": 4, "n_layer": 6, "vocab_size": 1000, "n_positions": 256,
}  # fmt: skip
DROPS = {"attention_dropout": 0.1, "residual_dropout": 0.1, "embedding_dropout": 0.1}
DEEPSEEK = {
    "model_type": "deepseek_v2", "hidden_size": 512, "intermediate_size": 1376, "moe_intermediate_size": 352,
    "num_hidden_layers": 5, "num_attention_heads": 4, "num_key_value_heads": 4, "vocab_size": 1000,
    "n_routed_experts": 16, "n_shared_experts": 2, "num_experts_per_tok": 6, "first_k_dense_replace": 1,
    "q_lora_rank": None, "kv_lora_rank": 256, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128,
    "topk_method": "greedy", "max_position_embeddings": 256,
}  # fmt: skip
QUERIED = {**DEEPSEEK, "q_lora_rank": 384, "n_group": 4, "topk_group": 2}
V3 = {key: value for key, value in QUERIED.items() if key != "topk_method"} | {"model_type": "deepseek_v3"}

CONFIGS: dict[str, tuple[dict[str, Any], ...]] = {
    "gpt2": (GPT, {**GPT, "n_embd": 768, "n_head": 6, "n_layer": 3, "n_inner": 1024}),
    "opt": (OPT, {**OPT, "num_attention_heads": 4, "ffn_dim": 1024, "num_hidden_layers": 7}),
    "opt-projected": (
        {**OPT, "word_embed_proj_dim": 256, "do_layer_norm_before": False},
        {**OPT, "word_embed_proj_dim": 384, "do_layer_norm_before": False, "num_hidden_layers": 3},
    ),
    "gpt_neox": (NEOX, {**NEOX, "num_attention_heads": 4, "rotary_pct": 0.5, "num_hidden_layers": 3}),
    "gpt_bigcode": (BIGCODE, {**BIGCODE, "n_head": 8, "n_inner": 1024, "n_layer": 3}),
    "falcon": (FALCON, {**FALCON, "hidden_size": 512, "num_attention_heads": 4, "num_hidden_layers": 3}),
    "falcon-gqa": tuple(
        {**FALCON, "hidden_size": 512, "num_attention_heads": 8, "num_kv_heads": keys, "num_hidden_layers": depth,
         "new_decoder_architecture": True}
        for keys, depth in ((2, 5), (4, 3))
    ),
    "olmo": tuple({**LLAMA, "model_type": "olmo", "num_hidden_layers": each} for each in (5, 3)),
    "olmo2": (
        {**LLAMA, "model_type": "olmo2"},
        {**LLAMA, "model_type": "olmo2", "num_attention_heads": 4, "num_hidden_layers": 3},
    ),
    "olmo2-gqa": tuple(
        {**LLAMA, "model_type": "olmo2", "num_key_value_heads": keys, "num_hidden_layers": depth}
        for keys, depth in ((2, 5), (4, 3))
    ),
    "granite": tuple(
        {**LLAMA, "model_type": "granite", "num_key_value_heads": keys, "tie_word_embeddings": tied}
        for keys, tied in ((2, True), (4, False))
    ),
    "starcoder2": tuple(
        {**LLAMA, **DROPS, "model_type": "starcoder2", "num_key_value_heads": keys, "tie_word_embeddings": tied}
        for keys, tied in ((2, True), (4, False))
    ),
    "cohere": (
        {**LLAMA, "model_type": "cohere"},
        {**LLAMA, "model_type": "cohere", "num_key_value_heads": 2, "num_hidden_layers": 3},
        {**LLAMA, "model_type": "cohere", "num_key_value_heads": 4, "use_qk_norm": True},
    ),
    "stablelm": tuple(
        {**LLAMA, "model_type": "stablelm", "num_key_value_heads": 8, "use_qkv_bias": biased,
         "partial_rotary_factor": 0.25}
        for biased in (False, True)
    ),
    "deepseek_v2": (
        DEEPSEEK,
        {**DEEPSEEK, "num_hidden_layers": 7, "n_routed_experts": 8, "kv_lora_rank": 128},
        {**QUERIED, "topk_method": "group_limited_greedy"},
    ),
    "deepseek_v3": (
        {**V3, "first_k_dense_replace": 2},
        {**V3, "first_k_dense_replace": 3, "num_hidden_layers": 8, "n_group": 2, "topk_group": 1},
        V3,
    ),
}  # fmt: skip
QUICK = {("gpt2", 0, "train+bf16"), ("deepseek_v3", 1, "train+bf16"), ("olmo2", 1, "train+bf16")}
VARIANTS = (
    "train+bf16", "train+amp-bf16", "train+fp32", "infer+bf16", "infer+fp32", "train+bf16+checkpoint",
    "train+amp-bf16+checkpoint", "train+bf16+lora", "train+bf16+checkpoint+lora-all+4bit",
)  # fmt: skip
SIZES = {"batch": 3, "seq": 128, "rank": 16}


def cases() -> Iterator[Any]:
    for family, configs in CONFIGS.items():
        for at, config in enumerate(configs):
            for variant in VARIANTS:
                marks = [] if (family, at, variant) in QUICK else [SLOW]
                yield pytest.param(config, variant, marks=marks, id=f"{family}-{at}-{variant}")


SLOW = pytest.mark.skipif(
    os.environ.get("TERA_CORPUS") != "all", reason="`make corpus` runs the whole corpus"
)


@pytest.mark.parametrize(("config", "variant"), [*cases()])
def test_an_expanded_family_does_what_the_model_does(config: dict[str, Any], variant: str) -> None:
    expanded = config_trace(shape_of(config, "config.json"), variant, name="config.json")
    if expanded is None:
        pytest.skip("this variant is not recorded")
    direct = recorded(config, variant)
    found, wanted = Flat(expanded), Flat(direct)
    assert found.parameters == wanted.parameters
    assert found.operations == wanted.operations
    assert found.live_peak == wanted.live_peak


def recorded(config: dict[str, Any], variant: str) -> Trace:
    from lab.architectures import Architecture
    from lab.families import build
    from lab.record import Variant, record, transformers_recorded

    words = dict(config)
    kind = words.pop("model_type")

    def make(layers: int) -> Any:
        return hf.AutoModelForCausalLM.from_config(hf.AutoConfig.for_model(kind, **words))

    def made(variant: Variant, sizes: Any) -> Any:
        return build(Architecture(make, (), {}), variant, sizes, 0)

    with transformers_recorded():
        return record("direct", Variant(variant), made, {"batch": 6, "seq": 112})


class Flat:
    """A trace with its symbols filled in."""

    def __init__(self, trace: Trace) -> None:
        self.sizes = evaluate_all(trace.expressions, {**trace.symbols, **SIZES})
        self.parameters = sorted(tuple(self.sizes[at] for at in each.shape) for each in trace.parameters)
        start = trace.events.index(Mark.STEP * EVENT_KINDS + EventKind.MARK)
        each_operation = [
            (one.name, self.shapes(one.inputs), self.shapes(one.outputs)) for one in trace.operations
        ]
        self.operations = [
            each_operation[event // EVENT_KINDS]
            for event in trace.events[start:]
            if event % EVENT_KINDS == EventKind.OPERATE
        ]
        self.live_peak = self._live_peak(trace)

    def shapes(self, tensors: list[Tensor]) -> list[tuple[str, tuple[int, ...]]]:
        return [(each.dtype, tuple(self.sizes[at] for at in each.shape)) for each in tensors]

    def _live_peak(self, trace: Trace) -> int:
        born: list[int] = []
        live = peak = 0
        for event in trace.events:
            kind, argument = event % EVENT_KINDS, event // EVENT_KINDS
            if kind == EventKind.ALLOCATE:
                born.append(self.sizes[argument])
                live += born[-1]
                peak = max(peak, live)
            elif kind == EventKind.FREE:
                live -= born[-argument]
        return peak
