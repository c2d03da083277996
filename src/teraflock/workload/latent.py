"""Reads the configs of DeepSeek: keys and values come from a latent vector, and experts follow dense layers."""

from typing import Final

from teraflock.base.errors import BadInput
from teraflock.workload.shape import HEAD_MAX, HEAD_STEP, TRACE_HINT, Fields, ModelShape

_DEFAULTS: Final[dict[str, object]] = {
    "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128, "kv_lora_rank": 512,
    "max_position_embeddings": 4096,
}  # fmt: skip
_V2: Final[dict[str, object]] = {
    **_DEFAULTS, "hidden_size": 4096, "intermediate_size": 11008, "moe_intermediate_size": 1407, "vocab_size": 102400,
    "num_hidden_layers": 32, "num_attention_heads": 32, "n_routed_experts": 64, "n_shared_experts": 2,
    "topk_method": "greedy",
}  # fmt: skip
_V3: Final[dict[str, object]] = {
    **_DEFAULTS, "hidden_size": 7168, "intermediate_size": 18432, "moe_intermediate_size": 2048, "vocab_size": 129280,
    "num_hidden_layers": 61, "num_attention_heads": 128, "n_routed_experts": 256, "n_shared_experts": 1, "n_group": 8,
    "topk_group": 4, "num_experts_per_tok": 8, "first_k_dense_replace": 3,
}  # fmt: skip


def deepseek_v2(fields: Fields) -> ModelShape:
    """`q_lora_rank` of null has a meaning: queries have no latent vector."""
    own = fields.with_defaults(_V2)
    own.refuse("first_k_dense_replace", unless=1)
    if own.data.get("first_k_dense_replace") is None:
        raise BadInput(f"`{own.name}` is incomplete: it has no `first_k_dense_replace`")
    has_query = fields.data.get("q_lora_rank", 1536) is not None
    own.refuse("topk_method", unless="group_limited_greedy" if has_query else "greedy")
    own.refuse("attention_bias", unless=False)
    return _shape(own, "deepseek_v2" if has_query else "deepseek_v2-lite", has_query, grouped=has_query)


def deepseek_v3(fields: Fields) -> ModelShape:
    own = fields.with_defaults(_V3)
    own.refuse("rope_interleave", unless=True)
    own.refuse("attention_bias", unless=False)
    own.refuse("norm_topk_prob", unless=True)
    if fields.data.get("q_lora_rank", 1536) is None:
        own.refuse("q_lora_rank", unless=1536)
        raise BadInput(f"`{own.name}`: `q_lora_rank` of null is not supported", hint=TRACE_HINT)
    dense = own.layers("first_k_dense_replace")
    return _shape(own, "deepseek_v3" if dense > 1 else "deepseek_v3-one", True, grouped=True)


def _shape(own: Fields, family: str, has_query: bool, *, grouped: bool) -> ModelShape:
    layers, dense = own.layers("num_hidden_layers"), own.layers("first_k_dense_replace")
    if dense >= layers:
        raise BadInput(f"`{own.name}`: {dense} dense layers leave no layer with experts")
    own.refuse("num_key_value_heads", unless=own.size("num_attention_heads"))
    own.refuse("tie_word_embeddings", unless=False)
    own.refuse("hidden_act", unless="silu")
    widths = {**_attention(own), **_experts(own, grouped=grouped)}
    if has_query:
        widths["query"] = own.size("q_lora_rank", 1536)
    return ModelShape(
        family=family,
        layers=(dense, layers - dense) if family == "deepseek_v3" else (layers,),
        widths=widths,
        positions=own.size("max_position_embeddings"),
        # The cache holds latent vectors.
        kv_elements_per_token=layers * widths["down"],
        notes=own.drops("attention_dropout", recorded=False),
    )


def _attention(own: Fields) -> dict[str, int]:
    nope, rope = own.size("qk_nope_head_dim"), own.size("qk_rope_head_dim")
    value, latent = own.size("v_head_dim"), own.size("kv_lora_rank")
    if nope + rope <= HEAD_MAX or (nope + rope) % HEAD_STEP or value % HEAD_STEP or rope % 2:
        raise BadInput(
            f"`{own.name}`: heads with keys of {nope + rope} and values of {value} elements are not supported",
            hint=f"Keys with more than {HEAD_MAX} elements are supported, in multiples of {HEAD_STEP}. {TRACE_HINT}",
        )
    return {
        "kv": own.size("num_attention_heads"),
        "nope": nope,
        "rope": rope,
        "value": value,
        "latent": latent,
        "key": nope + rope,
        "up": nope + value,
        "down": latent + rope,
        "hidden": own.size("hidden_size"),
        "inter": own.size("intermediate_size"),
        "vocab": own.size("vocab_size"),
    }


def _experts(own: Fields, *, grouped: bool) -> dict[str, int]:
    experts, chosen = own.size("n_routed_experts"), own.size("num_experts_per_tok")
    groups = own.size("n_group", 1) if grouped else 1
    kept = own.size("topk_group", groups)
    if experts % groups:
        raise BadInput(f"`{own.name}`: {experts} experts cannot be divided into {groups} groups")
    if kept > groups or chosen > experts // groups * (kept if grouped else 1):
        raise BadInput(
            f"`{own.name}`: {chosen} of {experts} experts cannot be chosen from {kept} of {groups} groups"
        )
    return {
        "expert": own.size("moe_intermediate_size"),
        "shared": own.size("n_shared_experts"),
        "groups": groups,
        "each": experts // groups,
        "chosen": chosen,
        **({"kept": kept} if grouped else {}),
    }
