"""Data loaders: they run in the script's own process and report the number of samples per batch."""

from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import torch.utils.data
from torch.utils.data import dataloader

from teraflock.workload.tracing.side import tensors_in
from teraflock.workload.tracing.unknown import Notes


def loading_patches(notes: Notes, loaded: Callable[[int], None]) -> Iterator[Any]:
    real_init = torch.utils.data.DataLoader.__init__
    real_next = dataloader._BaseDataLoaderIter.__next__

    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        workers = kwargs.get("num_workers") or (args[5] if len(args) > 5 else 0)
        if workers:
            notes.add(
                f"The data loader runs with 0 workers instead of {workers}: a trace does not time data loading"
            )
        args = (*args[:5], 0, *args[6:]) if len(args) > 5 else args
        kept = {key: value for key, value in kwargs.items() if key not in DROPPED}
        real_init(self, *args, **kept)

    def following(self: Any) -> Any:
        batch = real_next(self)
        loaded(_samples(batch))
        return batch

    yield mock.patch.object(torch.utils.data.DataLoader, "__init__", init)
    yield mock.patch.object(dataloader._BaseDataLoaderIter, "__next__", following)


DROPPED = frozenset(
    ("num_workers", "pin_memory", "persistent_workers", "prefetch_factor", "multiprocessing_context",
     "timeout", "pin_memory_device", "worker_init_fn", "in_order")
)  # fmt: skip


def _samples(batch: Any) -> int:
    """The first dimension of the first tensor; 0 if a batch has none."""
    if hasattr(batch, "values") and not isinstance(batch, torch.Tensor):
        batch = list(batch.values()) if callable(batch.values) else ()
    return next((int(each.shape[0]) for each in tensors_in(batch) if each.dim() > 0), 0)
