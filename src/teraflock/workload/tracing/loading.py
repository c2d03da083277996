"""Data loaders: they run in the script's own process and report the number of samples per batch."""

from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import torch.utils.data
from torch.utils.data import BatchSampler, dataloader

from teraflock.workload.tracing.side import PINNED, tensors_in
from teraflock.workload.tracing.unknown import Notes


def loading_patches(notes: Notes, loaded: Callable[[int], None], times: int = 1) -> Iterator[Any]:
    """`times` makes each batch that many times as large as the script asks for."""
    real_init = torch.utils.data.DataLoader.__init__
    real_begin, real_next = dataloader._BaseDataLoaderIter.__init__, dataloader._BaseDataLoaderIter.__next__

    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        workers = kwargs.get("num_workers") or (args[5] if len(args) > 5 else 0)
        if workers:
            notes.add(
                f"The data loader runs with 0 workers instead of {workers}: a trace does not time data loading"
            )
        args = (*args[:5], 0, *args[6:]) if len(args) > 5 else args
        self.teraflock_pins = bool(kwargs.get("pin_memory") or (len(args) > PIN_MEMORY and args[PIN_MEMORY]))
        args = (*args[:PIN_MEMORY], False, *args[PIN_MEMORY + 1 :]) if len(args) > PIN_MEMORY else args
        kept = {key: value for key, value in kwargs.items() if key not in DROPPED}
        real_init(self, *args, **kept)

    def begin(self: Any, loader: Any) -> None:
        real_begin(self, loader)
        self.teraflock_pins = loader.teraflock_pins

    def following(self: Any) -> Any:
        batch = real_next(self)
        if self.teraflock_pins:
            for each in tensors_in(_parts(batch)):
                setattr(each, PINNED, True)
        loaded(_samples(batch, getattr(getattr(self, "_index_sampler", None), "batch_size", None)))
        return batch

    real_sampler = BatchSampler.__init__

    def sampler(self: Any, samples: Any, batch_size: int, drop_last: bool) -> None:
        real_sampler(self, samples, batch_size * times, drop_last)

    yield mock.patch.object(torch.utils.data.DataLoader, "__init__", init)
    if times > 1:
        yield mock.patch.object(BatchSampler, "__init__", sampler)
    yield mock.patch.object(dataloader._BaseDataLoaderIter, "__init__", begin)
    yield mock.patch.object(dataloader._BaseDataLoaderIter, "__next__", following)


PIN_MEMORY = 7
"""The position of this argument."""
DROPPED = frozenset(
    ("num_workers", "pin_memory", "persistent_workers", "prefetch_factor", "multiprocessing_context",
     "timeout", "pin_memory_device", "worker_init_fn", "in_order")
)  # fmt: skip


def _samples(batch: Any, wanted: int | None) -> int:
    """The first dimension of the first tensor, or the second if that is the batch that the script asked for; 0 if a
    batch has no tensor."""
    batch = _parts(batch)
    shape: Any = next((each.shape for each in tensors_in(batch) if each.dim() > 0), (0,))
    is_time_first = len(shape) > 1 and shape[0] != wanted == shape[1]
    return images_in(batch) or int(shape[1] if is_time_first else shape[0])


def _parts(batch: Any) -> Any:
    """The values of a batch that is like a dictionary; other batches as they are."""
    if hasattr(batch, "values") and not isinstance(batch, torch.Tensor):
        return list(batch.values()) if callable(batch.values) else ()
    return batch


def images_in(batch: Any) -> int:
    """Detection models take lists of images of any size: how many there are. 0 if the batch has no such list."""
    first: Any = batch[0] if isinstance(batch, (list, tuple)) and batch else None
    if not isinstance(first, (list, tuple)):
        return 0
    return len(first) if all(isinstance(each, torch.Tensor) and each.dim() == 3 for each in first) else 0
