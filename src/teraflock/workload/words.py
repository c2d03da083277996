"""The words of a workload, as `tera estimate`, `tera plan` and the API take them."""

from typing import TYPE_CHECKING, Final

import msgspec

from teraflock.base.errors import BadInput, UnknownName
from teraflock.base.quantities import Whole, Word, check_between

if TYPE_CHECKING:
    from teraflock.workload.model import Workload

WAYS_MAX: Final = 8
FILES: Final = (".trace", ".json", ".py")


class WorkloadWords(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A workload as it was asked for, all but its model. The bounds are those of the API."""

    batch: Whole | None = None
    """Samples per step on each GPU."""
    global_batch: Whole | None = None
    """Samples per step on all GPUs together, in place of `batch`."""
    seq: Whole | None = None
    image_size: Whole | None = None
    precision: Word = "fp32"
    optimizer: Word | None = None
    gradient_checkpointing: bool = False
    lora_rank: Whole | None = None
    lora_targets: Word | None = None
    """`query-value` (the default) or `all` linear layers."""
    load_in: Word | None = None
    """`4bit`: weights as bitsandbytes stores them for QLoRA."""
    accumulate: Whole | None = None
    """Passes of `batch` samples for each step of the optimizer."""
    task: Word = "train"
    kv_cache: bool = False
    steps: float | None = None
    epochs: float | None = None
    samples: float | None = None
    tensor_parallel: Whole | None = None

    @property
    def ways(self) -> int:
        """GPUs that run each batch together."""
        check_between("tensor-parallel", self.tensor_parallel, 1, WAYS_MAX)
        return self.tensor_parallel or 1


def without_files(name: str) -> str:
    """A model's name that stands for no file, known or not. For the API: what a tenant sends must not open a file."""
    from teraflock.workload.zoo import entry

    if name.lower().endswith(FILES):
        raise BadInput(
            f"`{name}` is a file, and the server knows models by name only",
            hint="`tera estimate --models` lists the names; `tera estimate FILE` reads files on your own machine",
        )
    try:
        return entry(name).name
    except UnknownName:
        if "/" in name:
            raise  # it would be looked for among the files
        return name


def check_total(words: WorkloadWords) -> None:
    """Refuse a global batch that cannot be."""
    if words.global_batch is None:
        return
    if words.batch is not None:
        raise BadInput("Say `--batch` or `--global-batch`, not both")
    if words.global_batch < 1:
        raise BadInput(f"A batch holds at least one sample, not {words.global_batch}")


def total_samples(words: WorkloadWords) -> float | None:
    if words.epochs is None and words.samples is None:
        return None
    if words.epochs is None or words.samples is None:
        raise BadInput("`--epochs` and `--samples` belong together", hint="Or say `--steps`")
    return words.epochs * words.samples


def default_optimizer(model: str, task: str) -> str:
    """Of a model of the zoo: what people train such models with. A trace says itself."""
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
            raise BadInput(f"A batch holds at least one sample, not {batch}")
        batch = batch or 0
    elif batch is None:
        entry(model)  # an unknown name is the better complaint
        raise BadInput("Say how many samples a step holds", hint="For instance `--batch 64`")
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
        accumulate=words.accumulate or 1,
    )
