"""Wrappers of a model or a run: several processes, compilation, checkpoints. One process is traced, in eager mode."""

import contextlib
import multiprocessing.process
import warnings
from collections.abc import Iterator
from typing import Any, Final
from unittest import mock

import torch
import torch.multiprocessing

from teraflock.workload.tracing.device import Quiet
from teraflock.workload.tracing.sharding import sharding_patches
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
    "gather",
    "scatter",
    "new_group",
    "send",
    "recv",
]


def wrapping_patches(notes: Notes) -> Iterator[Any]:
    yield from _compilation(notes)
    yield from _parallel(notes)
    yield from _distributed(notes)
    if torch.distributed.is_available():
        yield from sharding_patches(notes)

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
            yield mock.patch.object(distributed, name, Quiet)
    for name, answer in _DISTRIBUTED.items():
        yield mock.patch.object(distributed, name, lambda *args, _answer=answer, **kwargs: _answer)
    yield mock.patch.object(distributed, "init_process_group", init_process_group)
    yield mock.patch.object(distributed, "all_gather", _all_gather)
    yield mock.patch.object(distributed, "is_initialized", lambda: started["is"])

    def spawn(function: Any, args: Any = (), nprocs: int = 1, *rest: Any, **kwargs: Any) -> None:
        notes.add(f"`spawn` of {nprocs} processes: the first one is traced")
        function(0, *args)

    yield mock.patch.object(torch.multiprocessing, "spawn", spawn)
    yield from _processes(notes)


def _all_gather(gathered: list[Any], tensor: Any, *args: Any, **kwargs: Any) -> Quiet:
    gathered[:] = [tensor] * len(gathered)
    return Quiet()


def _processes(notes: Notes) -> Iterator[Any]:
    """Processes that train: the first one runs here, the others do not run. Those with a queue or a pipe start."""
    real_start = multiprocessing.process.BaseProcess.start
    real_join = multiprocessing.process.BaseProcess.join
    inside: list[Any] = []

    def trains(process: Any) -> bool:
        given = [*process._args, *process._kwargs.values()]
        connected = any(type(each).__module__.startswith("multiprocessing") for each in given)
        return getattr(process._target, "__module__", "") == "__main__" and not connected

    def start(self: Any) -> None:
        if not trains(self):
            return real_start(self)
        self.teraflock_ran = True
        if not inside:
            inside.append(self)
            notes.add("Of several processes, the first one is traced")
            self._target(*self._args, **self._kwargs)
        return None

    def join(self: Any, timeout: Any = None) -> None:
        if not getattr(self, "teraflock_ran", False):
            real_join(self, timeout)

    yield mock.patch.object(multiprocessing.process.BaseProcess, "start", start)
    yield mock.patch.object(multiprocessing.process.BaseProcess, "join", join)


def _loaded(real: Any) -> Any:
    def load(*args: Any, **kwargs: Any) -> Any:
        kwargs["map_location"] = "cpu"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # PyTorch 2.4 warns of a default, at our line
            return real(*args[:1], **kwargs)

    return load
