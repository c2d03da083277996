"""The options of a workload in `tera estimate`, `tera plan` and the API."""

from typing import TYPE_CHECKING, Final

import msgspec

from teraflock.base.errors import BadInput, UnknownName
from teraflock.base.quantities import Whole, Word, check_between

if TYPE_CHECKING:
    from teraflock.workload.model import Workload

WAYS_MAX: Final = 8
STAGE_MAX: Final = 3
FILES: Final = (".trace", ".json", ".py")


class WorkloadWords(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A workload as requested, without its model. The API has the same bounds."""

    batch: Whole | None = None
    """Samples per step on each GPU."""
    global_batch: Whole | None = None
    """Samples per step on all GPUs together, instead of `batch`."""
    seq: Whole | None = None
    image_size: Whole | None = None
    precision: Word = "fp32"
    optimizer: Word | None = None
    gradient_checkpointing: bool = False
    lora_rank: Whole | None = None
    lora_targets: Word | None = None
    """`query-value` (the default) or `all` linear layers."""
    load_in: Word | None = None
    """`4bit` or `8bit`: weights as bitsandbytes stores them, in NF4 or LLM.int8."""
    lora_dtype: Word | None = None
    """`fp32`: LoRA matrices in float32, peft's default. Left out: in the type of the model."""
    accumulate: Whole | None = None
    """Passes of `batch` samples per optimizer step."""
    compile: bool = False
    """Run the model under `torch.compile` with default options. The optimizer is not compiled."""
    task: Word = "train"
    kv_cache: bool = False
    steps: float | None = None
    epochs: float | None = None
    samples: float | None = None
    tensor_parallel: Whole | None = None
    shard: bool = False
    """Shard weights, gradients and optimizer state across GPUs: the same as `zero` 3."""
    zero: Whole | None = None
    """ZeRO stage: GPUs shard the optimizer state (1), also the gradients (2), also the weights (3)."""
    offload: bool = False
    """Run the optimizer's step on the host, which keeps its state."""

    @property
    def stage(self) -> int:
        """The ZeRO stage; 0 without sharding."""
        check_between("zero", self.zero, 1, STAGE_MAX)
        if self.shard and self.zero not in (None, STAGE_MAX):
            raise BadInput("`--shard` means ZeRO 3 and conflicts with `--zero`", hint="Use `--zero` alone")
        return STAGE_MAX if self.shard else self.zero or 0

    @property
    def ways(self) -> int:
        """The number of GPUs that run each batch together."""
        check_between("tensor-parallel", self.tensor_parallel, 1, WAYS_MAX)
        return 1 if self.tensor_parallel is None else self.tensor_parallel


def without_files(name: str) -> str:
    """Check that a model's name is not a file. For the API: a tenant's request must not open a file on the server."""
    from teraflock.workload.zoo import entry

    if name.lower().endswith(FILES):
        raise BadInput(
            f"`{name}` is a file, and the server accepts only model names",
            hint="`tera estimate --models` lists the names. `tera estimate FILE` reads files on your own machine",
        )
    try:
        return entry(name).name
    except UnknownName:
        if "/" in name:
            raise  # it would be looked up as a file
        return name


def check_total(words: WorkloadWords) -> None:
    """Refuse an invalid global batch."""
    if words.global_batch is None:
        return
    if words.batch is not None:
        raise BadInput("Give `--batch` or `--global-batch`, not both")
    if words.global_batch < 1:
        raise BadInput(f"The batch must be at least 1, not {words.global_batch}")


def total_samples(words: WorkloadWords) -> float | None:
    if words.epochs is None and words.samples is None:
        return None
    if words.epochs is None or words.samples is None:
        raise BadInput("`--epochs` and `--samples` must be given together", hint="Or use `--steps`")
    return words.epochs * words.samples


def default_optimizer(model: str, task: str) -> str:
    """The usual optimizer of a zoo model. A trace determines its own."""
    from teraflock.workload.model import is_trace
    from teraflock.workload.zoo import entry

    if task != "train" or is_trace(model):
        return ""
    return "adamw" if entry(model).kind == "text" else "sgd"


def workload_from(model: str, batch: int | None, words: WorkloadWords) -> "Workload":
    from teraflock.workload.model import Workload, is_trace
    from teraflock.workload.zoo import entry

    optimizer = words.optimizer
    if is_trace(model):
        if batch is not None and batch < 1:
            raise BadInput(f"The batch must be at least 1, not {batch}")
        batch = batch or 0
    elif batch is None:
        entry(model)  # if the name is unknown, report that instead
        raise BadInput(
            "Give the number of samples per step",
            hint="For example `--batch 64`. `tera estimate MODEL --batch 1` shows the largest batch that fits",
        )
    elif optimizer is None:
        optimizer = default_optimizer(model, words.task)
    return Workload(
        model=model,
        task=words.task,
        batch=batch,
        seq=words.seq,
        image_size=words.image_size,
        precision=words.precision,
        optimizer=optimizer or "",
        gradient_checkpointing=words.gradient_checkpointing,
        lora_rank=words.lora_rank,
        kv_cache=words.kv_cache,
        lora_targets=words.lora_targets or "query-value",
        load_in=words.load_in or "",
        lora_dtype=words.lora_dtype or "",
        accumulate=1 if words.accumulate is None else words.accumulate,
        compile=words.compile,
    )
