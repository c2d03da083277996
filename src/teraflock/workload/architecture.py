"""Reads a Hugging Face config: the recorded family that the model belongs to, its layers and its widths.

There is one function per architecture. Fields that a config leaves out have the defaults of transformers. A config that
needs operations that were not recorded is refused, because a trace of another model would be worse than none.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from teraflock.base.errors import BadInput

HEAD_STEP: Final = 8
HEAD_MAX: Final = 128
"""For wider heads, attention uses another kernel than the recorded one."""
WIDE_HEAD_MAX: Final = 256
"""For families that were recorded with heads wider than `HEAD_MAX`."""
WIDTH_MAX: Final = 1 << 24
LAYERS_MAX: Final = 1024
TRACE_HINT: Final = "Record a script with it instead: `tera trace train.py -o job.trace`"
TEXT, IMAGE = "text", "image"


class ModelShape(msgspec.Struct, frozen=True, kw_only=True):
    """The sizes of a model in the terms of its family."""

    family: str
    layers: tuple[int, ...]
    """Of each stack: an encoder before a decoder, and CLIP's image encoder before its text encoder."""
    widths: dict[str, int]
    kind: str = TEXT
    positions: int = 0
    kv_elements_per_token: int = 0
    """Keys and values that a cache holds for each token."""
    kv_elements_fixed: int = 0
    """Keys and values of the encoder's output for each sample, independent of its length."""
    image: int = 0
    other_head: str = ""
    """The class that the config names, if it has another head than the recorded model."""


class Fields:
    """Reads and checks the fields of one config."""

    def __init__(self, data: Mapping[str, Any], name: str) -> None:
        self.data, self.name = data, name

    def size(self, field: str, default: int | None = None, most: int = WIDTH_MAX) -> int:
        value = self.data.get(field)
        if value is None:
            value = default
        if value is None:
            raise BadInput(f"`{self.name}` is incomplete: it has no `{field}`")
        if type(value) is not int or not 1 <= value <= most:
            raise BadInput(f"`{self.name}`: `{field}` is not a number from 1 to {most:,}")
        return value

    def layers(self, field: str, default: int | None = None) -> int:
        return self.size(field, default, LAYERS_MAX)

    def is_on(self, field: str, *, default: bool = False) -> bool:
        value = self.data.get(field)
        return default if value is None else value is True

    def inner(self, field: str) -> "Fields":
        value = self.data.get(field)
        return Fields(value if isinstance(value, dict) else {}, f"{self.name}, {field}")

    def refuse(self, field: str, *, unless: object) -> None:
        """Refuse other values than the one that was recorded."""
        value = self.data.get(field)
        if value is not None and value != unless:
            raise BadInput(f"`{self.name}`: `{field}` of {value} is not supported", hint=TRACE_HINT)

    def head(self, size: int, most: int = HEAD_MAX) -> int:
        if size % HEAD_STEP or size > most:
            raise BadInput(
                f"`{self.name}`: heads with {size} elements are not supported",
                hint=f"Multiples of {HEAD_STEP} up to {most} are supported. {TRACE_HINT}",
            )
        return size

    def share(self, hidden: int, heads: int, most: int = HEAD_MAX) -> int:
        """The width of a head if heads divide the hidden state."""
        if hidden % heads:
            raise BadInput(f"`{self.name}`: {heads} heads cannot divide {hidden} elements evenly")
        return self.head(hidden // heads, most)


def _attention(fields: Fields, *, most: int = HEAD_MAX, head_default: int | None = None) -> dict[str, int]:
    """The number of keys, the heads for each of them, and the width of a head, of a decoder."""
    hidden, heads = fields.size("hidden_size"), fields.size("num_attention_heads")
    keys = fields.size("num_key_value_heads", heads)
    if heads % keys:
        raise BadInput(f"`{fields.name}`: {heads} heads cannot share {keys} keys and values")
    given = fields.data.get("head_dim") or head_default
    head = fields.head(fields.size("head_dim", given), most) if given else fields.head(hidden // heads, most)
    return {"kv": keys, "group": heads // keys, "head": head}


def _decoder(
    kind: str,
    *,
    tied: bool | None = None,
    most: int = HEAD_MAX,
    head_default: int | None = None,
    positions: int = 0,
) -> Callable[[Fields], ModelShape]:
    """`tied`: whether the embedding is also the output layer by default. `None`: there is no separate family for it."""

    def read(fields: Fields) -> ModelShape:
        widths = _attention(fields, most=most, head_default=head_default)
        shared = tied is not None and fields.is_on("tie_word_embeddings", default=tied)
        layers = fields.layers("num_hidden_layers")
        if kind in ("llama", "qwen3", "gemma", "gemma2", "gemma3", "mixtral"):
            fields.refuse("attention_bias", unless=False)
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
        )

    return read


def _gemma(kind: str, positions: int) -> Callable[[Fields], ModelShape]:
    plain = _decoder(kind, most=WIDE_HEAD_MAX, head_default=256, positions=positions)

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


def _mixture(kind: str) -> Callable[[Fields], ModelShape]:
    plain = _decoder(kind, positions=32768)

    def read(fields: Fields) -> ModelShape:
        fields.refuse("tie_word_embeddings", unless=False)
        fields.refuse("decoder_sparse_step", unless=1)
        fields.refuse("mlp_only_layers", unless=[])
        experts = fields.data.get("num_experts") or fields.data.get("num_local_experts")
        own = Fields({**fields.data, "num_experts": experts}, fields.name)
        widths = {"experts": own.size("num_experts"), "chosen": own.size("num_experts_per_tok")}
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


def _phi3(fields: Fields) -> ModelShape:
    fields.refuse("partial_rotary_factor", unless=1.0)
    fields.refuse("tie_word_embeddings", unless=False)
    found = _decoder("phi3", positions=4096)(fields)
    widths = dict(found.widths)
    if widths["kv"] * widths["group"] * widths["head"] != widths.pop("hidden"):
        raise BadInput(
            f"`{fields.name}`: heads that do not divide the hidden state are not supported", hint=TRACE_HINT
        )
    return msgspec.structs.replace(found, widths={**widths, "joined": widths["group"] + 2})


def _phi(fields: Fields) -> ModelShape:
    fields.refuse("qk_layernorm", unless=False)
    fields.refuse("tie_word_embeddings", unless=False)
    found = _decoder("phi", positions=2048)(fields)
    if found.widths["group"] > 1:
        raise BadInput(f"`{fields.name}`: heads that share keys are not supported for `phi`", hint=TRACE_HINT)
    factor = fields.data.get("partial_rotary_factor", 0.5)
    head = found.widths["head"]
    rotary = int(head * factor) if isinstance(factor, (int, float)) and 0 < factor < 1 else 0
    if not rotary:
        raise BadInput(f"`{fields.name}`: `partial_rotary_factor` is not a number between 0 and 1")
    return msgspec.structs.replace(found, widths={**found.widths, "rotary": rotary, "rest": head - rotary})


def _bert(kind: str, *, types: int) -> Callable[[Fields], ModelShape]:
    def read(fields: Fields) -> ModelShape:
        fields.refuse("tie_word_embeddings", unless=True)
        fields.refuse("is_decoder", unless=False)
        heads = fields.size("num_attention_heads", 12)
        # RoBERTa starts positions at two.
        before = 0 if kind == "bert" else 2
        positions = fields.size("max_position_embeddings", 512)
        return ModelShape(
            family=kind,
            layers=(fields.layers("num_hidden_layers", 12),),
            widths={
                "kv": heads,
                "head": fields.share(fields.size("hidden_size", 768), heads),
                "inter": fields.size("intermediate_size", 3072),
                "vocab": fields.size("vocab_size"),
                "positions": positions,
                "types": fields.size("type_vocab_size", types),
            },
            positions=positions - before,
        )

    return read


def _distilbert(fields: Fields) -> ModelShape:
    heads, positions = fields.size("n_heads", 12), fields.size("max_position_embeddings", 512)
    return ModelShape(
        family="distilbert",
        layers=(fields.layers("n_layers", 6),),
        widths={
            "kv": heads,
            "head": fields.share(fields.size("dim", 768), heads),
            "inter": fields.size("hidden_dim", 3072),
            "vocab": fields.size("vocab_size", 30522),
            "positions": positions,
        },
        positions=positions,
    )


def _patches(fields: Fields) -> dict[str, int]:
    image, patch = fields.size("image_size", 224), fields.size("patch_size")
    fields.refuse("num_channels", unless=3)
    if image % patch:
        raise BadInput(f"`{fields.name}`: patches of {patch} pixels cannot cover an image of {image} evenly")
    grid = image // patch
    return {"patch": patch, "grid": grid, "tokens": grid * grid + 1}


def _vit(fields: Fields) -> ModelShape:
    fields.refuse("qkv_bias", unless=True)
    heads, labels = fields.size("num_attention_heads", 12), fields.data.get("id2label")
    own = Fields({"patch_size": 16, **fields.data}, fields.name)
    return ModelShape(
        family="vit",
        layers=(fields.layers("num_hidden_layers", 12),),
        widths={
            "kv": heads,
            "head": fields.share(fields.size("hidden_size", 768), heads),
            "inter": fields.size("intermediate_size", 3072),
            "labels": len(labels) if isinstance(labels, dict) and labels else fields.size("num_labels", 2),
            **_patches(own),
        },
        kind=IMAGE,
        image=own.size("image_size", 224),
    )


def _clip(fields: Fields) -> ModelShape:
    text, vision = fields.inner("text_config"), fields.inner("vision_config")
    heads, eyes = text.size("num_attention_heads", 8), vision.size("num_attention_heads", 12)
    positions = text.size("max_position_embeddings", 77)
    own = Fields({"patch_size": 32, **vision.data}, vision.name)
    return ModelShape(
        family="clip",
        layers=(vision.layers("num_hidden_layers", 12), text.layers("num_hidden_layers", 12)),
        widths={
            "kv": heads,
            "head": text.share(text.size("hidden_size", 512), heads),
            "inter": text.size("intermediate_size", 2048),
            "vocab": text.size("vocab_size", 49408),
            "positions": positions,
            "vision_kv": eyes,
            "vision_head": vision.share(vision.size("hidden_size", 768), eyes),
            "vision_inter": vision.size("intermediate_size", 3072),
            **_patches(own),
            "joint": fields.size("projection_dim", 512),
        },
        positions=positions,
    )


def _t5(fields: Fields) -> ModelShape:
    form = fields.data.get("feed_forward_proj", "relu")
    tied = fields.is_on("tie_word_embeddings", default=True)
    family = {("relu", True): "t5-tied", ("gated-gelu", False): "t5-gated"}.get((form, tied))
    if family is None:
        words = f"`feed_forward_proj` of {form} with{'' if tied else 'out'} `tie_word_embeddings`"
        raise BadInput(f"`{fields.name}`: {words} is not supported", hint=TRACE_HINT)
    layers = fields.layers("num_layers", 6)
    decoder, heads = fields.layers("num_decoder_layers", layers), fields.size("num_heads", 8)
    head = fields.head(fields.size("d_kv", 64))
    return ModelShape(
        family=family,
        layers=(layers, decoder),
        widths={
            "kv": heads,
            "head": head,
            "hidden": fields.size("d_model", 512),
            "inter": fields.size("d_ff", 2048),
            "vocab": fields.size("vocab_size", 32128),
        },
        kv_elements_per_token=4 * decoder * heads * head,
    )


def _two_sided(fields: Fields, kind: str, more: Callable[[Fields], dict[str, int]], vocab: int) -> ModelShape:
    heads, inter = fields.size("encoder_attention_heads"), fields.size("encoder_ffn_dim")
    fields.refuse("decoder_attention_heads", unless=heads)
    fields.refuse("decoder_ffn_dim", unless=inter)
    fields.refuse("tie_word_embeddings", unless=True)
    widths = {
        "kv": heads,
        "head": fields.share(fields.size("d_model"), heads),
        "inter": inter,
        "vocab": fields.size("vocab_size", vocab),
        **more(fields),
    }
    return ModelShape(
        family=kind,
        layers=(fields.layers("encoder_layers"), fields.layers("decoder_layers")),
        widths=widths,
        positions=widths["positions"],
        kv_elements_per_token=2 * fields.layers("decoder_layers") * fields.size("d_model"),
    )


def _bart(fields: Fields) -> ModelShape:
    positions = fields.size("max_position_embeddings", 1024)
    # The table of positions has two extra rows.
    found = _two_sided(fields, "bart", lambda each: {"positions": positions + 2}, 50265)
    return msgspec.structs.replace(
        found, positions=positions, kv_elements_per_token=2 * found.kv_elements_per_token
    )


WHISPER_FRAMES: Final = 1500
"""Positions of Whisper's encoder: 30 seconds."""


def _whisper(fields: Fields) -> ModelShape:
    fields.refuse("max_source_positions", unless=WHISPER_FRAMES)

    def more(each: Fields) -> dict[str, int]:
        return {"positions": each.size("max_target_positions", 448), "mels": each.size("num_mel_bins", 80)}

    found = _two_sided(fields, "whisper", more, 51865)
    return msgspec.structs.replace(found, kv_elements_fixed=found.kv_elements_per_token * WHISPER_FRAMES)


READERS: Final[Mapping[str, Callable[[Fields], ModelShape]]] = {
    "llama": _decoder("llama", tied=False, positions=2048),
    "mistral": _decoder("llama", tied=False, positions=131072),
    "qwen2": _decoder("qwen2", tied=False, positions=32768),
    "qwen3": _decoder("qwen3", tied=False, positions=32768),
    "gemma": _gemma("gemma", 8192),
    "gemma2": _gemma("gemma2", 8192),
    "gemma3_text": _gemma("gemma3", 131072),
    "mixtral": _mixture("mixtral"),
    "qwen2_moe": _mixture("qwen2_moe"),
    "qwen3_moe": _mixture("qwen3_moe"),
    "phi": _phi,
    "phi3": _phi3,
    "bert": _bert("bert", types=2),
    "roberta": _bert("roberta", types=2),
    "xlm-roberta": _bert("roberta", types=2),
    "camembert": _bert("roberta", types=2),
    "distilbert": _distilbert,
    "vit": _vit,
    "clip": _clip,
    "t5": _t5,
    "bart": _bart,
    "whisper": _whisper,
}


def shape_of(data: Mapping[str, Any], name: str) -> ModelShape:
    """The sizes of the model with this config. Raise an error if it cannot be estimated by config."""
    kind = data.get("model_type")
    reader = READERS.get(kind) if isinstance(kind, str) else None
    if reader is None:
        raise BadInput(
            f"`{name}`: configs of the type `{kind}` are not supported",
            hint=f"Supported: {', '.join(f'`{each}`' for each in READERS)}. {TRACE_HINT}",
        )
    shape = reader(Fields(data, name))
    return msgspec.structs.replace(shape, other_head=_other_head(data.get("architectures"), shape))


SMALL_HEADS: Final = (
    "ForSequenceClassification",
    "ForTokenClassification",
    "ForQuestionAnswering",
    "ForMultipleChoice",
    "ForNextSentencePrediction",
)


def _other_head(architectures: object, shape: ModelShape) -> str:
    """Models of text are recorded with the head that predicts tokens, which is as wide as the vocabulary."""
    name = architectures[0] if isinstance(architectures, list) and architectures else ""
    if shape.kind != TEXT or shape.family == "clip" or not isinstance(name, str):
        return ""
    bare = name.endswith("Model") and not name.endswith(("LMHeadModel", "DoubleHeadsModel"))
    return name[:NAME_MAX] if name.isidentifier() and (bare or name.endswith(SMALL_HEADS)) else ""


NAME_MAX: Final = 80
