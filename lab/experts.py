"""DeepSeek in `lab/families.py`: attention over a latent vector, and experts after one or more dense layers.

Widths of matrices that compute two things at once are sums. Sizes are read as products, so each sum has a name and a
prime factor of its own: `key` is `nope` + `rope`, `up` is `nope` + `value`, `down` is `latent` + `rope`.
"""

from collections.abc import Callable
from typing import Any

import transformers as hf

from lab.architectures import HIDDEN, INTER, KV, VOCAB, Architecture, built

NOPE, ROPE, VALUE, LATENT = 8 * 61, 8 * 73, 8 * 97, 8 * 13
QUERY, EXPERT, SHARED = 16 * 41, 16 * 37, 47
GROUPS, EACH, KEPT, CHOSEN = 17, 31, 5, 11
PRIMES = {
    "kv": (7, 1), "nope": (61, 8), "rope": (73, 8), "value": (97, 8), "latent": (13, 8), "key": (67, 16),
    "up": (79, 16), "down": (43, 16), "hidden": (19, 16), "inter": (23, 16), "vocab": (29, 16), "expert": (37, 16),
    "shared": (47, 1), "groups": (17, 1), "each": (31, 1), "chosen": (11, 1),
}  # fmt: skip
GROUPED = {**PRIMES, "kept": (5, 1)}
LAYERS = ("model.layers",)
DENSE_AND_SPARSE = ("model.layers", "model.layers")
"""The first half are dense layers, the second half have experts."""


def _made(version: int, dense: Callable[[int], int], total: int = 1, **words: Any) -> Callable[[int], Any]:
    model = getattr(hf, f"DeepseekV{version}ForCausalLM")
    config = getattr(hf, f"DeepseekV{version}Config")
    sizes = {
        "hidden_size": 16 * KV, "intermediate_size": INTER, "moe_intermediate_size": EXPERT, "vocab_size": VOCAB,
        "num_attention_heads": KV, "num_key_value_heads": KV, "qk_nope_head_dim": NOPE, "qk_rope_head_dim": ROPE,
        "v_head_dim": VALUE, "kv_lora_rank": LATENT, "q_lora_rank": QUERY, "n_shared_experts": SHARED,
        "n_routed_experts": GROUPS * EACH, "num_experts_per_tok": CHOSEN, "n_group": GROUPS, "topk_group": KEPT,
        "max_position_embeddings": 4096, **words,
    }  # fmt: skip
    return lambda layers: built(
        model, config(num_hidden_layers=total * layers, first_k_dense_replace=dense(layers), **sizes), HIDDEN
    )


def deepseek() -> dict[str, Architecture]:
    query = {"query": (41, 16)}
    plain: dict[str, Any] = {
        "q_lora_rank": None,
        "topk_method": "greedy",
        "n_group": None,
        "topk_group": None,
    }
    limited: dict[str, Any] = {"topk_method": "group_limited_greedy"}

    def one(layers: int) -> int:
        return 1

    def half(layers: int) -> int:
        return layers

    return {
        "deepseek_v2-lite": Architecture(_made(2, one, **plain), LAYERS, PRIMES),
        "deepseek_v2": Architecture(_made(2, one, **limited), LAYERS, {**GROUPED, **query}),
        "deepseek_v3-one": Architecture(_made(3, one), LAYERS, {**GROUPED, **query}),
        "deepseek_v3": Architecture(_made(3, half, total=2), DENSE_AND_SPARSE, {**GROUPED, **query}),
    }
