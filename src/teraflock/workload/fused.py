"""Reads the configs of decoders that are not built like Llama.

They have learned positions, one matrix for queries, keys and values, heads that rotate in part, or other norms.
"""

from collections.abc import Callable
from typing import Final

import msgspec

from teraflock.base.errors import BadInput
from teraflock.workload.decoders import decoder
from teraflock.workload.shape import HEAD_MAX, TRACE_HINT, WIDE_HEAD_MAX, Fields, ModelShape


def gpt2(fields: Fields) -> ModelShape:
    fields.refuse("activation_function", unless="gelu_new")
    fields.refuse("add_cross_attention", unless=False)
    fields.refuse("tie_word_embeddings", unless=True)
    return _with_positions(
        fields,
        "gpt2",
        hidden=fields.size("n_embd", 768),
        heads=fields.size("n_head", 12),
        layers=fields.layers("n_layer", 12),
        inter=fields.data.get("n_inner") and fields.size("n_inner"),
        notes=fields.drops("resid_pdrop", "embd_pdrop", "attn_pdrop", recorded=True, default=0.1),
    )


def _with_positions(
    fields: Fields,
    kind: str,
    *,
    hidden: int,
    heads: int,
    layers: int,
    inter: int | None,
    notes: tuple[str, ...],
) -> ModelShape:
    positions = fields.size("n_positions", 1024)
    return ModelShape(
        family=kind,
        layers=(layers,),
        widths={
            "kv": heads,
            "head": fields.share(hidden, heads),
            "inter": inter or 4 * hidden,
            "vocab": fields.size("vocab_size", 50257),
            "positions": positions,
        },
        positions=positions,
        kv_elements_per_token=2 * layers * hidden,
        notes=notes,
    )


def gpt_bigcode(fields: Fields) -> ModelShape:
    """Queries have one key and value for all of them."""
    fields.refuse("multi_query", unless=True)
    fields.refuse("add_cross_attention", unless=False)
    fields.refuse("activation_function", unless="gelu_pytorch_tanh")
    fields.refuse("tie_word_embeddings", unless=True)
    heads, layers = fields.size("n_head", 12), fields.layers("n_layer", 12)
    found = _with_positions(
        fields,
        "gpt_bigcode",
        hidden=fields.size("n_embd", 768),
        heads=heads,
        layers=layers,
        inter=fields.data.get("n_inner") and fields.size("n_inner"),
        notes=fields.drops("resid_pdrop", "embd_pdrop", "attn_pdrop", recorded=True, default=0.1),
    )
    return _one_key(found, heads, layers)


def _one_key(found: ModelShape, heads: int, layers: int) -> ModelShape:
    widths = {name: size for name, size in found.widths.items() if name != "kv"}
    return msgspec.structs.replace(
        found,
        widths={**widths, "group": heads, "joined": heads + 2},
        kv_elements_per_token=2 * layers * widths["head"],
    )


OPT_EXTRA: Final = 2
"""Rows that its table of positions has beyond the positions."""


def opt(fields: Fields) -> ModelShape:
    for name in ("enable_bias", "layer_norm_elementwise_affine", "tie_word_embeddings"):
        fields.refuse(name, unless=True)
    fields.refuse("activation_function", unless="relu")
    fields.refuse("_remove_final_layer_norm", unless=False)
    hidden, heads = fields.size("hidden_size", 768), fields.size("num_attention_heads", 12)
    outer, layers = fields.size("word_embed_proj_dim", hidden), fields.layers("num_hidden_layers", 12)
    fields.refuse("do_layer_norm_before", unless=outer == hidden)
    positions = fields.size("max_position_embeddings", 2048)
    widths = {
        "kv": heads,
        "head": fields.share(hidden, heads),
        "inter": fields.size("ffn_dim", 3072),
        "vocab": fields.size("vocab_size", 50272),
        "positions": positions + OPT_EXTRA,
    }
    return ModelShape(
        family="opt" if outer == hidden else "opt-projected",
        layers=(layers,),
        widths=widths if outer == hidden else {**widths, "outer": outer},
        positions=positions,
        kv_elements_per_token=2 * layers * hidden,
        notes=fields.drops("dropout", recorded=True, default=0.1)
        + fields.drops("attention_dropout", recorded=False),
    )


def rotary(fields: Fields, default: float, *names: str, most: int = HEAD_MAX) -> dict[str, int]:
    """The elements of a head that rotate, and the others."""
    head = fields.share(fields.size("hidden_size"), fields.size("num_attention_heads"), most)
    parameters = fields.inner("rope_parameters")
    factor = parameters.number("partial_rotary_factor", default)
    for name in names:
        factor = fields.number(name, factor)
    turned = int(head * factor)
    if turned % 2 or not 0 < turned < head:
        raise BadInput(
            f"`{fields.name}`: rotary embeddings of {turned} of {head} elements are not supported",
            hint=TRACE_HINT,
        )
    return {"head": head, "rotary": turned, "rest": head - turned}


def gpt_neox(fields: Fields) -> ModelShape:
    own = fields.with_defaults(
        {"vocab_size": 50432, "hidden_size": 6144, "num_attention_heads": 64, "num_hidden_layers": 44}
    )
    for name in ("use_parallel_residual", "attention_bias"):
        own.refuse(name, unless=True)
    own.refuse("tie_word_embeddings", unless=False)
    own.refuse("hidden_act", unless="gelu")
    heads, layers = own.size("num_attention_heads"), own.layers("num_hidden_layers")
    turned = rotary(own, 0.25, "rotary_pct", most=WIDE_HEAD_MAX)
    return ModelShape(
        family=f"gpt_neox{'-wide' * (turned['head'] > HEAD_MAX)}",
        layers=(layers,),
        widths={
            "kv": heads,
            **turned,
            "inter": own.size("intermediate_size", 24576),
            "vocab": own.size("vocab_size"),
        },
        positions=own.size("max_position_embeddings", 2048),
        kv_elements_per_token=2 * layers * own.size("hidden_size"),
        notes=own.drops("hidden_dropout", "attention_dropout", recorded=False),
    )


def stablelm(fields: Fields) -> ModelShape:
    own = fields.with_defaults({"vocab_size": 50304, "hidden_size": 2560, "intermediate_size": 6912})
    own = own.with_defaults({"num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 32})
    for name in ("qk_layernorm", "use_parallel_residual", "tie_word_embeddings"):
        own.refuse(name, unless=False)
    own.refuse("hidden_act", unless="silu")
    heads = own.size("num_attention_heads")
    own.refuse("num_key_value_heads", unless=heads)
    found = decoder("stablelm", positions=4096)(own)
    return msgspec.structs.replace(
        found,
        family=f"stablelm{'-biased' * own.is_on('use_qkv_bias')}",
        widths={
            "kv": heads,
            **rotary(own, 0.25, "partial_rotary_factor"),
            "inter": found.widths["inter"],
            "vocab": found.widths["vocab"],
        },
        notes=own.drops("hidden_dropout", "attention_dropout", recorded=False),
    )


def falcon(fields: Fields) -> ModelShape:
    own = fields.with_defaults({"vocab_size": 65024, "hidden_size": 4544, "num_hidden_layers": 32})
    own = own.with_defaults({"num_attention_heads": 71})
    for name, only in {
        "alibi": False,
        "bias": False,
        "tie_word_embeddings": True,
        "activation": "gelu",
    }.items():
        own.refuse(name, unless=only)
    many = own.is_on("new_decoder_architecture")
    if many:
        own.refuse("num_ln_in_parallel_attn", unless=2)
    else:
        own.refuse("multi_query", unless=True)
        own.refuse("parallel_attn", unless=True)
    hidden, heads = own.size("hidden_size"), own.size("num_attention_heads")
    keys, layers = own.size("num_kv_heads", heads) if many else 1, own.layers("num_hidden_layers")
    if heads % keys:
        raise BadInput(f"`{fields.name}`: {heads} heads cannot share {keys} keys and values")
    group, head = heads // keys, own.share(hidden, heads)
    return ModelShape(
        family="falcon-gqa" if many else "falcon",
        layers=(layers,),
        widths={
            **({"kv": keys} if many else {}),
            "group": group,
            "joined": group + 2,
            "head": head,
            "inter": own.size("ffn_hidden_size", 4 * hidden),
            "vocab": own.size("vocab_size"),
        },
        positions=own.size("max_position_embeddings", 2048),
        # Without grouped heads, transformers caches one key and value; with them, one for each group.
        kv_elements_per_token=2 * layers * keys * head,
        notes=own.drops("hidden_dropout", "attention_dropout", recorded=False),
    )


def like_llama(
    kind: str,
    defaults: dict[str, object],
    *,
    tied: bool,
    refused: dict[str, object] | None = None,
    drops: tuple[str, ...] = ("attention_dropout",),
    recorded: bool = False,
) -> Callable[[Fields], ModelShape]:
    """Widths as Llama's, but with other norms, biases or factors. `recorded`: whether with dropout."""
    plain = decoder(kind, tied=tied)

    def read(fields: Fields) -> ModelShape:
        own = fields.with_defaults(defaults)
        for name, only in (refused or {}).items():
            own.refuse(name, unless=only)
        return msgspec.structs.replace(plain(own), notes=own.drops(*drops, recorded=recorded))

    return read


def cohere(fields: Fields) -> ModelShape:
    normed = fields.is_on("use_qk_norm")
    read = like_llama(
        f"cohere{'-normed' * normed}",
        {
            "hidden_size": 8192, "intermediate_size": 22528, "num_hidden_layers": 40, "num_attention_heads": 64,
            "vocab_size": 256000, "max_position_embeddings": 8192, "tie_word_embeddings": True,
        },
        tied=True,
        refused={"tie_word_embeddings": True, "hidden_act": "silu"},
    )  # fmt: skip
    return read(fields)


_LIKE_LLAMA: Final[dict[str, object]] = {
    "hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32, "num_attention_heads": 32,
    "max_position_embeddings": 2048,
}  # fmt: skip
_SILU: Final[dict[str, object]] = {"hidden_act": "silu"}
_DROPOUTS: Final = ("attention_dropout", "residual_dropout", "embedding_dropout")

olmo = like_llama(
    "olmo", {**_LIKE_LLAMA, "vocab_size": 50304}, tied=False, refused={**_SILU, "clip_qkv": None}
)
olmo2 = like_llama("olmo2", {**_LIKE_LLAMA, "vocab_size": 50304}, tied=False, refused=_SILU)
granite = like_llama(
    "granite", {**_LIKE_LLAMA, "vocab_size": 32000}, tied=False, refused={**_SILU, "mlp_bias": False}
)
starcoder2 = like_llama(
    "starcoder2",
    {
        "hidden_size": 3072, "intermediate_size": 12288, "num_hidden_layers": 30, "num_attention_heads": 24,
        "num_key_value_heads": 2, "vocab_size": 49152, "max_position_embeddings": 4096,
    },
    tied=True,
    refused={"use_bias": True, "hidden_act": "gelu_pytorch_tanh"},
    drops=_DROPOUTS,
    recorded=True,
)  # fmt: skip
