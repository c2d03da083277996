"""Measures the memory of one GPU among several: `python -m lab.measure_sharded JOBS OUT`.

The other GPUs are PyTorch's fake process group: collectives allocate what they allocate on real GPUs and move nothing.
So one card shows the peak of each of many, and nothing about time. A job has `way` and `gpus` beside the
fields of `lab/measure.py`. Ways: `ddp`; `zero1`, DDP with `ZeroRedundancyOptimizer`; `zero2`, FSDP that shards
gradients and optimizer state; `zero3`, `fully_shard` over each layer. Each job runs in a process of its own.
"""

import json
import multiprocessing
import sys
from pathlib import Path
from typing import Any

STEPS = 3


def layers(net: Any) -> list[Any]:
    """The blocks that a user would shard one by one: the members of the longest list of modules."""
    import torch

    lists: list[Any] = [each for each in net.modules() if isinstance(each, torch.nn.ModuleList)]
    longest: Any = max((list(each) for each in lists), key=len, default=[])
    return list(longest)


def shared(net: Any, job: dict[str, Any]) -> tuple[Any, Any]:
    """The model as each GPU has it, and its optimizer."""
    import torch
    from torch.distributed.fsdp import FullyShardedDataParallel, ShardingStrategy, fully_shard
    from torch.distributed.fsdp.wrap import ModuleWrapPolicy
    from torch.distributed.optim import ZeroRedundancyOptimizer

    from lab.measure import optimizer

    if job["way"] in ("ddp", "zero1"):
        whole = torch.nn.parallel.DistributedDataParallel(net)
        whole.register_comm_hook(
            None, _as_reduced
        )  # the fake group's own reduction has no result to wait for
        trained = [each for each in net.parameters() if each.requires_grad]
        if job["way"] == "ddp":
            return whole, optimizer(job["optimizer"], trained)
        return whole, ZeroRedundancyOptimizer(trained, optimizer_class=torch.optim.AdamW, lr=1e-6)
    if job["way"] == "zero2":
        policy = ModuleWrapPolicy({type(each) for each in layers(net)})
        made = FullyShardedDataParallel(
            net,
            auto_wrap_policy=policy,
            sharding_strategy=ShardingStrategy.SHARD_GRAD_OP,
            device_id=0,
            use_orig_params=True,
        )
        return made, optimizer(job["optimizer"], list(made.parameters()))
    for each in layers(net):
        fully_shard(each)
    fully_shard(net)
    return net, optimizer(job["optimizer"], list(net.parameters()))


def _as_reduced(_, bucket):  # type: ignore[no-untyped-def]  # PyTorch checks the annotations of a hook
    import torch

    done = torch.futures.Future()
    done.set_result(bucket.buffer())
    return done


def measure(job: dict[str, Any], out: Path) -> None:
    import torch
    from torch.testing._internal.distributed.fake_pg import FakeStore

    from lab.language import MODELS
    from lab.measure import AMP, HALF
    from lab.rows import append_line

    torch.distributed.init_process_group("fake", rank=0, world_size=job["gpus"], store=FakeStore())
    torch.manual_seed(0)
    torch.set_default_dtype(HALF.get(job["precision"], torch.float32))
    with torch.device("cuda"):
        net = MODELS[job["model"]]()
        ids = torch.randint(0, 20000, (job["batch"], job["seq"]))
    torch.set_default_dtype(torch.float32)
    net.config.use_cache = False
    if job["ckpt"]:
        net.gradient_checkpointing_enable()
    net.train()
    whole, trained = shared(net, job)
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    kind = AMP.get(job["precision"])
    for _ in range(STEPS):
        trained.zero_grad(set_to_none=True)
        with torch.autocast("cuda", dtype=kind or torch.bfloat16, enabled=kind is not None):
            loss = whole(input_ids=ids, labels=ids).loss
        loss.backward()
        trained.step()
    torch.cuda.synchronize()
    found = {"live": torch.cuda.max_memory_allocated(), "reserved": torch.cuda.max_memory_reserved()}
    append_line(out, {"job": job, **found})
    print(
        job["way"],
        job["gpus"],
        job["model"],
        job["precision"],
        f"{found['live'] / 2**30:.2f} GiB",
        flush=True,
    )


def main() -> None:
    start = multiprocessing.get_context("spawn")
    for line in Path(sys.argv[1]).read_text().splitlines():
        child = start.Process(target=measure, args=(json.loads(line), Path(sys.argv[2])))
        child.start()
        child.join(60)
        if child.is_alive():
            child.kill()
            print("FAILED: no answer within 60 s", line, flush=True)


if __name__ == "__main__":
    main()
