"""The model zoo: names, the valid options of each model, and its traces.

There is a trace for each variant (task, precision, checkpointing, LoRA). Precisions with the same allocations share
one: fp16 uses that of bf16, and tf32 that of fp32.
"""

import os
from collections.abc import Sequence
from functools import cache
from typing import Final

import msgspec

from teraflock.base.errors import BadInput, unknown_name
from teraflock.workload.config import (
    config_trace,
    is_config_file,
    named,
    read_config,
    shape_named,
    variants_of_family,
)
from teraflock.workload.hub import forms
from teraflock.workload.model import Workload, checked
from teraflock.workload.shape import TRACE_HINT, ModelShape
from teraflock.workload.trace import Trace, read_trace

FOLDER: Final = f"{os.path.dirname(__file__)}/data/traces"  # noqa: PTH120
"""A str: importing pathlib or importlib.resources takes longer than reading a trace."""
ENCODERS: Final = ("bert", "roberta", "distilbert")
IMAGE_STEPS: Final = {"vit_b_16": 16, "vit_l_16": 16}
IMAGE_LEAST: Final = {"alexnet": 63, "inception_v3": 75}
"""For models whose smallest possible image is larger than `IMAGE_MIN`."""
IMAGE_FIXED: Final = {
    "swin_t", "biggan-128", "dcgan", "unet-diffusion-sd15", "unet-diffusion-sdxl",
    "yolov8n", "yolov8s",
}  # fmt: skip


class ZooEntry(msgspec.Struct, frozen=True):
    name: str
    kind: str
    """`image`, `text` or `generator`."""
    seq_max: int = 0
    """Positions of a text model; 0 if they are relative or there are none."""
    kv_elements_per_token: int = 0
    """Keys and values of all layers that a cache holds for each token."""
    image: int = 0
    shape: ModelShape | None = None
    """For a model that is known only by its config."""
    kv_elements_fixed: int = 0
    """Keys and values that a cache holds for each sample, independent of its length."""


def _image(names: str, pixels: int = 224) -> list[ZooEntry]:
    return [ZooEntry(name, "image", image=pixels) for name in names.split()]


ENTRIES: Final[dict[str, ZooEntry]] = {
    each.name: each
    for each in [
        *_image(
            "alexnet vgg11 vgg16 vgg19 resnet18 resnet34 resnet50 resnet101 resnet152 resnext50_32x4d wide_resnet50_2"
            " densenet121 googlenet mobilenet_v2 mobilenet_v3_large efficientnet_b0 convnext_tiny convnext_base"
            " vit_b_16 vit_l_16 swin_t regnet_y_8gf squeezenet1_0 shufflenet_v2_x1_0"
        ),
        *_image("inception_v3", 299),
        *_image("yolov8n yolov8s", 640),
        *_image("efficientnet_b4", 380),
        ZooEntry("bert-base", "text", 512, 2 * 12 * 768),
        ZooEntry("bert-large", "text", 512, 2 * 24 * 1024),
        ZooEntry("roberta-base", "text", 512, 2 * 12 * 768),
        ZooEntry("distilbert", "text", 512, 2 * 6 * 768),
        ZooEntry("gpt2", "text", 1024, 2 * 12 * 768),
        ZooEntry("gpt2-medium", "text", 1024, 2 * 24 * 1024),
        ZooEntry("gpt2-large", "text", 1024, 2 * 36 * 1280),
        ZooEntry("gpt2-xl", "text", 1024, 2 * 48 * 1600),
        ZooEntry("t5-base", "text", 0, 4 * 12 * 768),
        ZooEntry("llama-1b", "text", 131072, 2 * 16 * 8 * 64),
        ZooEntry("llama-3b", "text", 131072, 2 * 28 * 8 * 128),
        ZooEntry("llama-8b", "text", 131072, 2 * 32 * 8 * 128),
        ZooEntry("qwen2-0.5b", "text", 32768, 2 * 24 * 2 * 64),
        ZooEntry("opt-1.3b", "text", 2048, 2 * 24 * 2048),
        ZooEntry("biggan-128", "generator", image=128),
        ZooEntry("unet-diffusion-sd15", "generator", image=64),
        ZooEntry("unet-diffusion-sdxl", "generator", image=128),
        ZooEntry("dcgan", "generator", image=64),
    ]
}
RECORDED_AS: Final = {"fp16": "bf16", "fp8": "bf16", "tf32": "fp32", "amp-fp16": "amp-bf16"}


def entry(name: str) -> ZooEntry:
    if is_config_file(name):
        return _by_config(name, read_config(name))
    for form in forms(name):
        if form in ENTRIES:
            return ENTRIES[form]
        if form in named():
            return _by_config(form, shape_named(form))
    raise unknown_name(
        "model",
        name,
        [*ENTRIES, *named()],
        see="`tera estimate --models` lists them. For any other model give its Hugging Face `config.json`, or record"
        " your script with `tera trace train.py -o job.trace`",
    )


def _by_config(name: str, shape: ModelShape) -> ZooEntry:
    return ZooEntry(
        name,
        shape.kind,
        shape.positions,
        shape.kv_elements_per_token,
        image=shape.image,
        shape=shape,
        kv_elements_fixed=shape.kv_elements_fixed,
    )


def known_names() -> list[str]:
    return sorted([*ENTRIES, *named()])


def variant(workload: Workload) -> str:
    words = [workload.task, RECORDED_AS.get(workload.precision, workload.precision)]
    if workload.gradient_checkpointing:
        words.append("checkpoint")
    if workload.lora_rank:
        words.append({"query-value": "lora"}.get(workload.lora_targets, f"lora-{workload.lora_targets}"))
    if workload.load_in:
        words.append(workload.load_in)
    if workload.lora_dtype and workload.precision in ("bf16", "fp16"):  # otherwise they are in float32 anyway
        words.append("fp32-adapters")
    return "+".join(words)


def check(workload: Workload) -> ZooEntry:
    """The entry of the model. Raise an error if it does not support the options. Reads no trace."""
    checked(workload)
    known = entry(workload.model)
    _check_sizes(known, workload)
    return known


def config_notes(name: str, seq: int | None = None) -> list[str]:
    """What a config names and an estimate has not."""
    shape = entry(name).shape
    if shape is None:
        return []
    notes = list(shape.notes)
    if shape.window and seq and seq > shape.window:
        notes.append(
            f"the config limits attention to {shape.window:,} tokens, but the estimate is for attention to all"
            f" {seq:,}; transformers adds a mask for it, which needs more memory"
        )
    return notes


def is_encoder(name: str) -> bool:
    """Whether it is BERT or a relative of it."""
    known = entry(name)
    return (known.shape.family if known.shape else known.name.split("-")[0]) in ENCODERS


def trace_for(workload: Workload) -> Trace:
    """The recorded step of a zoo model. If the variant was not recorded, the error lists those that were."""
    known = entry(workload.model)
    _check_sizes(known, workload)
    wanted = variant(workload)
    shape = known.shape
    found = config_trace(shape, wanted, name=known.name) if shape else _read(known.name, wanted)
    if found is None:
        variants = variants_of_family(shape) if shape else variants_of(known.name)
        if not variants:
            raise BadInput(
                f"{known.name}: models of this form (`{shape.family if shape else known.name}`) are not supported",
                hint=TRACE_HINT,
            )
        raise BadInput(
            f"{known.name} was not recorded as {wanted.replace('+', ', ')}",
            hint=_similar(wanted, workload.precision, variants),
        )
    return found


SIMILAR_MAX: Final = 4


def _similar(wanted: str, precision: str, variants: Sequence[str]) -> str:
    """A hint: the precisions with which the same variant was recorded, or else the variants that differ least."""
    parts = frozenset(wanted.split("+"))
    recorded = {each: frozenset(each.split("+")) for each in variants}
    precisions = sorted({next(iter(each - parts)) for each in recorded.values() if parts - each == {precision}
                         and len(each - parts) == 1})  # fmt: skip
    if precisions:
        return "Use " + " or ".join(f"`--precision {each}`" for each in precisions)
    nearest = sorted(variants, key=lambda each: len(parts ^ recorded[each]))[:SIMILAR_MAX]
    return "Recorded, the most similar first: " + "; ".join(each.replace("+", ", ") for each in nearest)


def symbols_for(workload: Workload, trace: Trace) -> dict[str, int]:
    """The values of the trace's symbols. Options that are not given keep the recorded value."""
    symbols = dict(trace.symbols)
    asked = {
        "batch": workload.batch,
        "seq": workload.seq,
        "image": workload.image_size,
        "rank": workload.lora_rank,
    }
    for symbol, value in asked.items():
        if symbol in symbols and value is not None:
            symbols[symbol] = value
    return symbols


SEQ_DEFAULT: Final = 512


def with_sizes(workload: Workload) -> Workload:
    """The workload with the default sizes of its model filled in."""
    known = entry(workload.model)
    seq, image = workload.seq, workload.image_size
    if known.kind == "text" and seq is None:
        seq = min(SEQ_DEFAULT, known.seq_max or SEQ_DEFAULT)
    if known.kind != "text" and image is None:
        image = known.image
    return msgspec.structs.replace(workload, model=known.name, seq=seq, image_size=image)


def variants_of(name: str) -> list[str]:
    names = os.listdir(FOLDER)  # noqa: PTH208 -- see FOLDER
    return sorted(
        each[len(name) + 1 : -6] for each in names if each.startswith(f"{name}+") and each.endswith(".trace")
    )


@cache
def _read(name: str, wanted: str) -> Trace | None:
    file = f"{name}+{wanted}.trace"
    try:
        with open(f"{FOLDER}/{file}", "rb") as recorded:  # noqa: PTH123
            return read_trace(recorded.read(), name=file)
    except FileNotFoundError:
        return None


def _check_sizes(known: ZooEntry, workload: Workload) -> None:
    if known.kind == "text":
        if workload.image_size is not None:
            raise BadInput(f"{known.name} processes text and has no image size", hint="Remove `--image-size`")
        if known.seq_max and workload.seq is not None and workload.seq > known.seq_max:
            raise BadInput(
                f"{known.name} has {known.seq_max:,} positions, fewer than the {workload.seq:,} tokens of `--seq`",
                hint=f"Use `--seq {known.seq_max}` or less",
            )
        if workload.kv_cache and known.shape and not known.kv_elements_per_token:
            raise BadInput(f"{known.name} has no KV cache", hint="Remove `--kv-cache`")
        return
    if workload.seq is not None:
        raise BadInput(
            f"{known.name} processes images and has no sequence length",
            hint="Remove `--seq`, or use `--image-size`",
        )
    if (known.name in IMAGE_FIXED or known.shape) and workload.image_size not in (None, known.image):
        raise BadInput(
            f"{known.name} accepts only images of {known.image} pixels",
            hint="Remove `--image-size`",
        )
    multiple, least = IMAGE_STEPS.get(known.name, 1), IMAGE_LEAST.get(known.name, 0)
    if workload.image_size is not None and workload.image_size % multiple:
        raise BadInput(
            f"{known.name} splits images into patches: {workload.image_size} pixels are not a multiple of {multiple}",
            hint=f"Use `--image-size {workload.image_size // multiple * multiple or multiple}`",
        )
    if workload.image_size is not None and workload.image_size < least:
        raise BadInput(
            f"{known.name} needs images of at least {least} pixels, not {workload.image_size}",
            hint=f"Use `--image-size {least}` or more",
        )
    if workload.kv_cache:
        raise BadInput(f"{known.name} has no KV cache", hint="Remove `--kv-cache`")
    if workload.lora_rank or workload.gradient_checkpointing or workload.load_in:
        raise BadInput(
            f"LoRA, checkpointing and quantized weights apply to language models only, and not to {known.name}"
        )
