"""Wrappers of a model or a run: several processes, compilation, checkpoints. One process is traced, in eager mode."""

import contextlib
from collections.abc import Iterator
from typing import Any, Final
from unittest import mock

import torch
import torch.multiprocessing

from teraflock.workload.tracing.unknown import Notes

_DISTRIBUTED: Final = {
    "is_available": True, "get_rank": 0, "get_world_size": 1, "is_torchelastic_launched": False,
    "is_nccl_available": True, "is_gloo_available": True, "get_backend": "nccl",
}  # fmt: skip
_NOTHING: Final = [
    "init_process_group",
    "destroy_process_group",
    "barrier",
    "monitored_barrier",
    "all_reduce",
    "broadcast",
    "reduce",
    "all_gather_object",
    "broadcast_object_list",
    "all_gather_into_tensor",
    "reduce_scatter_tensor",
    "send",
    "recv",
]


def wrapping_patches(notes: Notes) -> Iterator[Any]:
    yield from _compilation(notes)
    yield from _parallel(notes)
    yield from _distributed(notes)

    def save(*args: Any, **kwargs: Any) -> None:
        notes.add("`torch.save` wrote nothing")

    yield mock.patch.object(torch, "save", save)
    yield mock.patch.object(torch, "load", _loaded(torch.load))


def _compilation(notes: Notes) -> Iterator[Any]:
    def said() -> None:
        notes.add("`torch.compile` is traced in eager mode: a compiled step takes less time and memory")

    def compiled(model: Any = None, **options: Any) -> Any:
        said()
        return (lambda function: function) if model is None else model

    def compile_module(self: Any, *args: Any, **kwargs: Any) -> None:
        said()

    yield mock.patch.object(torch, "compile", compiled)
    yield mock.patch.object(torch.nn.Module, "compile", compile_module)
    yield mock.patch.object(torch.jit, "script", lambda obj=None, *args, **kwargs: obj)
    yield mock.patch.object(torch.jit, "trace", lambda func, *args, **kwargs: func)


def _parallel(notes: Notes) -> Iterator[Any]:
    for kind in (torch.nn.parallel.DistributedDataParallel, torch.nn.DataParallel):
        yield mock.patch.object(kind, "__init__", _wrapped(kind, notes))
        yield mock.patch.object(kind, "forward", lambda self, *args, **kwargs: self.module(*args, **kwargs))
    yield mock.patch.object(torch.nn.parallel.DistributedDataParallel, "no_sync", _no_sync)
    yield mock.patch.object(torch.nn.parallel.DistributedDataParallel, "train", torch.nn.Module.train)


@contextlib.contextmanager
def _no_sync(self: Any) -> Iterator[None]:
    yield


def _wrapped(kind: Any, notes: Notes) -> Any:
    def init(self: Any, module: Any, *args: Any, **kwargs: Any) -> None:
        torch.nn.Module.__init__(self)
        self.module = module
        self.require_backward_grad_sync = True
        if kind is torch.nn.DataParallel:
            module.cuda()
            notes.add("`DataParallel` is traced on one GPU")
            return
        # The reducer holds a second copy of the gradients, which it sends.
        trained = [each for each in module.parameters() if each.requires_grad]
        self.teraflock_buckets = [torch.empty_like(each, requires_grad=False) for each in trained]
        notes.add(
            "`DistributedDataParallel` is traced as one process; `tera estimate --gpus N` adds the others"
        )

    return init


def _distributed(notes: Notes) -> Iterator[Any]:
    distributed = torch.distributed
    started = {"is": False}

    def init_process_group(*args: Any, **kwargs: Any) -> None:
        started["is"] = True

    for name in _NOTHING:
        if hasattr(distributed, name):
            yield mock.patch.object(distributed, name, lambda *args, **kwargs: None)
    for name, answer in _DISTRIBUTED.items():
        yield mock.patch.object(distributed, name, lambda *args, _answer=answer, **kwargs: _answer)
    yield mock.patch.object(distributed, "init_process_group", init_process_group)
    yield mock.patch.object(distributed, "is_initialized", lambda: started["is"])

    def spawn(function: Any, args: Any = (), nprocs: int = 1, *rest: Any, **kwargs: Any) -> None:
        notes.add(f"`spawn` of {nprocs} processes: the first one is traced")
        function(0, *args)

    yield mock.patch.object(torch.multiprocessing, "spawn", spawn)


def _loaded(real: Any) -> Any:
    def load(*args: Any, **kwargs: Any) -> Any:
        kwargs["map_location"] = "cpu"
        return real(*args[:1], **kwargs)

    return load
