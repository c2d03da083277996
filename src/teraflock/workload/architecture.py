"""Reads a Hugging Face config: the recorded family that the model belongs to, its layers and its widths."""

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from teraflock.base.errors import BadInput
from teraflock.workload import decoders, encoders, fused, latent
from teraflock.workload.shape import TEXT, TRACE_HINT, VALUE_MAX, Fields, ModelShape

READERS: Final[Mapping[str, Callable[[Fields], ModelShape]]] = {
    "llama": decoders.decoder("llama", tied=False, positions=2048),
    "mistral": decoders.decoder("llama", tied=False, positions=131072, window=4096),
    "qwen2": decoders.decoder("qwen2", tied=False, positions=32768),
    "qwen3": decoders.decoder("qwen3", tied=False, positions=32768),
    "gemma": decoders.gemma("gemma", 8192),
    "gemma2": decoders.gemma("gemma2", 8192, 4096),
    "gemma3_text": decoders.gemma("gemma3", 131072, 4096),
    "mixtral": decoders.mixture("mixtral"),
    "qwen2_moe": decoders.mixture("qwen2_moe"),
    "qwen3_moe": decoders.mixture("qwen3_moe"),
    "deepseek_v2": latent.deepseek_v2,
    "deepseek_v3": latent.deepseek_v3,
    "phi": decoders.phi,
    "phi3": decoders.phi3,
    "gpt2": fused.gpt2,
    "gpt_bigcode": fused.gpt_bigcode,
    "gpt_neox": fused.gpt_neox,
    "opt": fused.opt,
    "falcon": fused.falcon,
    "starcoder2": fused.starcoder2,
    "olmo": fused.olmo,
    "olmo2": fused.olmo2,
    "granite": fused.granite,
    "cohere": fused.cohere,
    "stablelm": fused.stablelm,
    "bert": encoders.bert("bert", types=2),
    "roberta": encoders.bert("roberta", types=2),
    "xlm-roberta": encoders.bert("roberta", types=2),
    "camembert": encoders.bert("roberta", types=2),
    "distilbert": encoders.distilbert,
    "vit": encoders.vit,
    "clip": encoders.clip,
    "t5": encoders.t5,
    "bart": encoders.bart,
    "whisper": encoders.whisper,
}
WITH_TEXT: Final = "text_config"


def shape_of(data: Mapping[str, Any], name: str) -> ModelShape:
    """The sizes of the model with this config. Raise an error if it cannot be estimated by config."""
    kind = data.get("model_type")
    reader = READERS.get(kind) if isinstance(kind, str) else None
    if reader is None:
        raise _unsupported(data, name, str(kind)[:VALUE_MAX])
    shape = reader(Fields(data, name))
    notes = (*_other_head(data.get("architectures"), shape), *_quantized(data), *shape.notes)
    return msgspec.structs.replace(shape, notes=notes)


def _unsupported(data: Mapping[str, Any], name: str, kind: str) -> BadInput:
    if data.get("model_type") is None:
        return BadInput(
            f"`{name}` has no `model_type`",
            hint=f"Configs of Hugging Face transformers are supported, not those of other libraries. {TRACE_HINT}",
        )
    inner = data.get(WITH_TEXT)
    if isinstance(inner, dict) and inner.get("model_type") in READERS:
        return BadInput(
            f"`{name}`: configs of the type `{kind}` are not supported: the model also reads other things than text",
            hint=f"Its text model is supported: save `{WITH_TEXT}` as a config of its own. {TRACE_HINT}",
        )
    return BadInput(
        f"`{name}`: configs of the type `{kind}` are not supported",
        hint=f"Supported: {', '.join(f'`{each}`' for each in READERS)}. {TRACE_HINT}",
    )


SMALL_HEADS: Final = (
    "ForSequenceClassification",
    "ForTokenClassification",
    "ForQuestionAnswering",
    "ForMultipleChoice",
    "ForNextSentencePrediction",
)


def _other_head(architectures: object, shape: ModelShape) -> tuple[str, ...]:
    """Models of text are recorded with the head that predicts tokens, which is as wide as the vocabulary."""
    name = architectures[0] if isinstance(architectures, list) and architectures else ""
    if shape.family.startswith("gemma3") and name == "Gemma3ForConditionalGeneration":
        return ("the estimate is for the text model, without the encoder of images",)
    if shape.kind != TEXT or shape.family == "clip" or not isinstance(name, str) or not name.isidentifier():
        return ()
    bare = name.endswith("Model") and not name.endswith(("LMHeadModel", "DoubleHeadsModel"))
    if not bare and not name.endswith(SMALL_HEADS):
        return ()
    return (
        f"the config is of {name[:VALUE_MAX]}, but the estimate is for the model with the head that predicts tokens,"
        " which needs more memory and time; `tera trace` records your own",
    )


def _quantized(data: Mapping[str, Any]) -> tuple[str, ...]:
    found = data.get("quantization_config")
    if not isinstance(found, dict):
        return ()
    method = found.get("quant_method")
    how = (
        f" ({method})"
        if isinstance(method, str) and method.isidentifier() and len(method) < VALUE_MAX
        else ""
    )
    return (
        f"the config has quantized weights{how}, but the estimate is for weights in the precision that you give;"
        " `--load-in` estimates weights in 4 or 8 bits",
    )
