"""A workload in the terms of the command line, and the checks on it."""

import os
from typing import Final, Literal, get_args

import msgspec

from teraflock.base.errors import BadInput, unknown_name

Precision = Literal["fp32", "tf32", "amp-bf16", "amp-fp16", "bf16", "fp16", "fp8"]
Optimizer = Literal[
    "sgd", "adam", "adamw", "adafactor", "adamw-8bit", "paged-adamw", "paged-adamw-8bit", "none"
]
LoraTargets = Literal["query-value", "all"]
LoadIn = Literal["", "4bit", "8bit"]
LoraDtype = Literal["", "fp32"]
Task = Literal["train", "infer"]

PRECISIONS: Final = get_args(Precision)
OPTIMIZERS: Final = get_args(Optimizer)
TASKS: Final = get_args(Task)
LORA_TARGETS: Final = get_args(LoraTargets)
LOAD_IN: Final = get_args(LoadIn)
LORA_DTYPES: Final = get_args(LoraDtype)

BATCH_MAX: Final = 1 << 22
SEQ_MAX: Final = 1 << 20
IMAGE_MIN: Final = 32
IMAGE_MAX: Final = 8192
LORA_RANK_MAX: Final = 1024
ACCUMULATE_MAX: Final = 1 << 16


class Workload(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=False):
    model: str
    """A known name, or the path of a trace or of a Hugging Face `config.json`."""
    task: str = "train"
    batch: int
    seq: int | None = None
    image_size: int | None = None
    precision: str = "fp32"
    optimizer: str = ""
    """`none`: only the forward and backward pass."""
    gradient_checkpointing: bool = False
    lora_rank: int | None = None
    kv_cache: bool = False
    lora_targets: str = "query-value"
    """Which linear layers get LoRA matrices: one of `LORA_TARGETS`."""
    load_in: str = ""
    """The number of bits of quantized weights, as in bitsandbytes: one of `LOAD_IN`."""
    accumulate: int = 1
    """Forward and backward passes per optimizer step, each with `batch` samples."""
    compile: bool = False
    """Whether the model runs under `torch.compile`."""
    lora_dtype: str = ""
    """The type of the LoRA matrices: that of the model, or `fp32`, as peft makes them by default."""


def is_trace(model: str) -> bool:
    """Whether a model's name means a file from `tera trace`."""
    if model.endswith(".trace"):
        return True
    return "/" in model and not model.endswith(".json") and os.path.isfile(model)  # noqa: PTH113 -- see read_trace_file


def checked(workload: Workload) -> Workload:
    """Return the workload, or raise an error that says what is wrong with it."""
    if workload.batch < 1:
        raise BadInput(f"The batch must be at least 1, not {workload.batch}")
    if workload.batch > BATCH_MAX:
        raise BadInput(f"The batch must be at most {BATCH_MAX:,}, not {workload.batch:,}")
    _one_of("task", workload.task, TASKS)
    _one_of("precision", workload.precision, PRECISIONS)
    if workload.task == "train":
        _one_of("optimizer", workload.optimizer, OPTIMIZERS)
    _between("sequence", workload.seq, 1, SEQ_MAX, "tokens")
    _between("image size", workload.image_size, IMAGE_MIN, IMAGE_MAX, "pixels")
    _between("LoRA rank", workload.lora_rank, 1, LORA_RANK_MAX, "")
    _one_of("set of LoRA targets", workload.lora_targets, LORA_TARGETS)
    _one_of("size of weights", workload.load_in, LOAD_IN)
    _one_of("type of LoRA matrices", workload.lora_dtype, LORA_DTYPES)
    _between("number of accumulated passes", workload.accumulate, 1, ACCUMULATE_MAX, "")
    if workload.lora_targets != "query-value" and not workload.lora_rank:
        raise BadInput("`--lora-targets` needs `--lora-rank`", hint="For example `--lora-rank 16`")
    if workload.lora_dtype and not workload.lora_rank:
        raise BadInput("`--lora-dtype` needs `--lora-rank`", hint="For example `--lora-rank 16`")
    if workload.load_in and workload.task == "train" and not workload.lora_rank:
        raise BadInput("Quantized weights cannot be trained", hint="Add LoRA, for example `--lora-rank 16`")
    if workload.load_in and workload.compile:
        raise BadInput(
            "`--compile` does not apply to quantized weights", hint="Remove `--compile` or `--load-in`"
        )
    if workload.precision == "fp8" and (workload.task == "infer" or workload.lora_rank):
        raise BadInput(
            "FP8 is estimated for training of all weights, as torchao's float8 training does it",
            hint="Use `--precision bf16`",
        )
    if workload.task == "infer" and workload.accumulate > 1:
        raise BadInput("Gradient accumulation applies to training only", hint="Remove `--accumulate`")
    if workload.task == "infer" and (workload.gradient_checkpointing or workload.lora_rank):
        raise BadInput(
            "Checkpointing and LoRA apply to training only", hint="Remove them, or use `--task train`"
        )
    if workload.task == "train" and workload.kv_cache:
        raise BadInput(
            "A KV cache applies to inference only", hint="Remove `--kv-cache`, or use `--task infer`"
        )
    return workload


def _one_of(kind: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise unknown_name(
            kind, value, known, see="Known: " + ", ".join(f"`{each}`" for each in known if each)
        )


def _between(kind: str, value: int | None, low: int, high: int, unit: str) -> None:
    if value is not None and not low <= value <= high:
        raise BadInput(
            f"The {kind} must be between {low:,} and {high:,} {unit}".rstrip() + f", not {value:,}"
        )
