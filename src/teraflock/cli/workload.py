"""The words of a workload, as `tera estimate` and `tera plan` take them."""

from typing import TYPE_CHECKING, Any

from teraflock.base.errors import BadInput

if TYPE_CHECKING:
    from teraflock.workload.model import Workload


def default_optimizer(model: str, task: str) -> str:
    """Of a model of the zoo: what people train such models with. A trace says itself."""
    from teraflock.workload.model import is_trace
    from teraflock.workload.zoo import entry

    if task != "train" or is_trace(model):
        return ""
    return "adamw" if entry(model).kind == "text" else "sgd"


def workload_from(model: str, options: dict[str, Any]) -> "Workload":
    from teraflock.workload.model import Workload, is_trace
    from teraflock.workload.zoo import entry

    batch, optimizer = options["batch"], options["optimizer"]
    if is_trace(model):
        if batch is not None and batch < 1:
            raise BadInput(f"A batch holds at least one sample, not {batch}")
        batch = batch or 0
    elif batch is None:
        entry(model)  # an unknown name is the better complaint
        raise BadInput("Say how many samples a step holds", hint="For instance `--batch 64`")
    elif optimizer is None:
        optimizer = default_optimizer(model, options["task"])
    return Workload(
        model=model,
        task=options["task"],
        batch=batch,
        seq=options["seq"],
        image_size=options["image_size"],
        precision=options["precision"],
        optimizer=optimizer or "",
        gradient_checkpointing=options["gradient_checkpointing"],
        lora_rank=options["lora_rank"],
        kv_cache=options["kv_cache"],
        lora_targets=options.get("lora_targets") or "query-value",
        load_in=options.get("load_in") or "",
        accumulate=options.get("accumulate") or 1,
    )
