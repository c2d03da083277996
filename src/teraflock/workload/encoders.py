"""Reads the configs of encoders, of models with an encoder and a decoder, and of models of images."""

from collections.abc import Callable
from typing import Final

import msgspec

from teraflock.base.errors import BadInput
from teraflock.workload.shape import IMAGE, TRACE_HINT, VALUE_MAX, Fields, ModelShape


def bert(kind: str, *, types: int) -> Callable[[Fields], ModelShape]:
    def read(fields: Fields) -> ModelShape:
        fields.refuse("tie_word_embeddings", unless=True)
        fields.refuse("is_decoder", unless=False)
        fields.refuse("hidden_act", unless="gelu")
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


def distilbert(fields: Fields) -> ModelShape:
    fields.refuse("activation", unless="gelu")
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


def vit(fields: Fields) -> ModelShape:
    fields.refuse("qkv_bias", unless=True)
    fields.refuse("hidden_act", unless="gelu")
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


def clip(fields: Fields) -> ModelShape:
    text, vision = fields.inner("text_config"), fields.inner("vision_config")
    for each in (text, vision):
        each.refuse("hidden_act", unless="quick_gelu")
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


def t5(fields: Fields) -> ModelShape:
    form = fields.data.get("feed_forward_proj", "relu")
    tied = fields.is_on("tie_word_embeddings", default=True)
    family = {("relu", True): "t5-tied", ("gated-gelu", False): "t5-gated"}.get((str(form), tied))
    if family is None:
        words = f"`feed_forward_proj` of {str(form)[:VALUE_MAX]} with{'' if tied else 'out'} `tie_word_embeddings`"
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
    fields.refuse("activation_function", unless="gelu")
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


def bart(fields: Fields) -> ModelShape:
    positions = fields.size("max_position_embeddings", 1024)
    # The table of positions has two extra rows.
    found = _two_sided(fields, "bart", lambda each: {"positions": positions + 2}, 50265)
    return msgspec.structs.replace(
        found, positions=positions, kv_elements_per_token=2 * found.kv_elements_per_token
    )


WHISPER_FRAMES: Final = 1500
"""Positions of Whisper's encoder: 30 seconds."""


def whisper(fields: Fields) -> ModelShape:
    fields.refuse("max_source_positions", unless=WHISPER_FRAMES)

    def more(each: Fields) -> dict[str, int]:
        return {"positions": each.size("max_target_positions", 448), "mels": each.size("num_mel_bins", 80)}

    found = _two_sided(fields, "whisper", more, 51865)
    return msgspec.structs.replace(found, kv_elements_fixed=found.kv_elements_per_token * WHISPER_FRAMES)
