"""Reads the configs of decoders: one function for each architecture."""

from collections.abc import Callable

import msgspec

from teraflock.base.errors import BadInput
from teraflock.workload.shape import HEAD_MAX, TRACE_HINT, WIDE_HEAD_MAX, Fields, ModelShape

GELU = ("gelu_pytorch_tanh", "gelu")
"""Older configs of Gemma name the second one, and transformers takes the first."""


def attention(fields: Fields, *, most: int = HEAD_MAX, head_default: int | None = None) -> dict[str, int]:
    """The number of keys, the heads for each of them, and the width of a head, of a decoder."""
    hidden, heads = fields.size("hidden_size"), fields.size("num_attention_heads")
    keys = fields.size("num_key_value_heads", heads)
    if heads % keys:
        raise BadInput(f"`{fields.name}`: {heads} heads cannot share {keys} keys and values")
    given = fields.data.get("head_dim") or head_default
    head = fields.head(fields.size("head_dim", given), most) if given else fields.head(hidden // heads, most)
    return {"kv": keys, "group": heads // keys, "head": head}


def decoder(
    kind: str,
    *,
    tied: bool | None = None,
    most: int = HEAD_MAX,
    head_default: int | None = None,
    positions: int = 0,
    window: int = 0,
    activation: str | tuple[str, ...] = "silu",
) -> Callable[[Fields], ModelShape]:
    """`tied`: whether the embedding is also the output layer by default. `None`: there is no separate family for it.
    `window`: the sliding window of a config that names none."""

    def read(fields: Fields) -> ModelShape:
        widths = attention(fields, most=most, head_default=head_default)
        shared = tied is not None and fields.is_on("tie_word_embeddings", default=tied)
        layers = fields.layers("num_hidden_layers")
        if kind != "qwen2":
            fields.refuse("attention_bias", unless=False)
        fields.refuse("mlp_bias", unless=False)
        for field in ("hidden_act", "hidden_activation"):
            fields.refuse(field, unless=activation)
        return ModelShape(
            family=f"{kind}{'-tied' * shared}{'-gqa' * (widths['group'] > 1)}",
            layers=(layers,),
            widths={
                **widths,
                "hidden": fields.size("hidden_size"),
                "inter": fields.size("intermediate_size"),
                "vocab": fields.size("vocab_size"),
            },
            positions=fields.size("max_position_embeddings", positions or 1 << 20),
            kv_elements_per_token=2 * layers * widths["kv"] * widths["head"],
            window=_window(fields, window),
        )

    return read


def _window(fields: Fields, default: int) -> int:
    if not fields.is_on("use_sliding_window", default=True):
        return 0
    if "sliding_window" not in fields.data:
        return default
    return 0 if fields.data["sliding_window"] is None else fields.size("sliding_window")


def gemma(kind: str, positions: int, window: int = 0) -> Callable[[Fields], ModelShape]:
    plain = decoder(
        kind, most=WIDE_HEAD_MAX, head_default=256, positions=positions, window=window, activation=GELU
    )

    def read(fields: Fields) -> ModelShape:
        fields.refuse("tie_word_embeddings", unless=True)
        found = plain(fields)
        if kind != "gemma2" and found.widths["head"] <= HEAD_MAX:
            # Recorded with heads wider than `HEAD_MAX`. Gemma 2 always uses unfused attention.
            raise BadInput(
                f"`{fields.name}`: heads with {found.widths['head']} elements are not supported",
                hint=TRACE_HINT,
            )
        return found

    return read


def mixture(kind: str) -> Callable[[Fields], ModelShape]:
    plain = decoder(kind, positions=32768)

    def read(fields: Fields) -> ModelShape:
        fields.refuse("tie_word_embeddings", unless=False)
        fields.refuse("decoder_sparse_step", unless=1)
        fields.refuse("mlp_only_layers", unless=[])
        own, experts = fields, "num_local_experts" if kind == "mixtral" else "num_experts"
        widths = {"experts": fields.size(experts), "chosen": fields.size("num_experts_per_tok")}
        if widths["chosen"] > widths["experts"]:
            raise BadInput(
                f"`{fields.name}`: {widths['chosen']} of {widths['experts']} experts cannot be chosen"
            )
        if kind != "mixtral":
            own = Fields({**own.data, "intermediate_size": fields.size("moe_intermediate_size")}, fields.name)
        if kind == "qwen2_moe":
            widths["shared"] = fields.size("shared_expert_intermediate_size")
        found = plain(own)
        return msgspec.structs.replace(found, widths={**found.widths, **widths})

    return read


def phi3(fields: Fields) -> ModelShape:
    fields.refuse("partial_rotary_factor", unless=1.0)
    fields.refuse("tie_word_embeddings", unless=False)
    found = decoder("phi3", positions=4096)(fields)
    widths = dict(found.widths)
    if widths["kv"] * widths["group"] * widths["head"] != widths.pop("hidden"):
        raise BadInput(
            f"`{fields.name}`: heads that do not divide the hidden state are not supported", hint=TRACE_HINT
        )
    return msgspec.structs.replace(found, widths={**widths, "joined": widths["group"] + 2})


def phi(fields: Fields) -> ModelShape:
    fields.refuse("qk_layernorm", unless=False)
    fields.refuse("tie_word_embeddings", unless=False)
    found = decoder("phi", positions=2048, activation="gelu_new")(fields)
    if found.widths["group"] > 1:
        raise BadInput(f"`{fields.name}`: heads that share keys are not supported for `phi`", hint=TRACE_HINT)
    factor = fields.data.get("partial_rotary_factor", 0.5)
    head = found.widths["head"]
    rotary = int(head * factor) if isinstance(factor, (int, float)) and 0 < factor < 1 else 0
    if not rotary:
        raise BadInput(f"`{fields.name}`: `partial_rotary_factor` is not a number between 0 and 1")
    return msgspec.structs.replace(found, widths={**found.widths, "rotary": rotary, "rest": head - rotary})
