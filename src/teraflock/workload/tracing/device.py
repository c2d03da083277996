"""The answers of `torch.cuda` and `torch.accelerator`: one idle, empty H200. Nothing calls a driver."""

import importlib
import types
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, Final
from unittest import mock

import torch

MEMORY_BYTES: Final = 150_754_820_096
_ANSWERS: Final[dict[str, Any]] = {
    "is_available": True,
    "is_initialized": True,
    "device_count": 1,
    "current_device": 0,
    "current_device_index": 0,
    "get_device_index": 0,
    "is_bf16_supported": True,
    "is_tf32_supported": True,
    "get_device_name": "NVIDIA H200",
    "get_device_capability": (9, 0),
    "get_arch_list": ["sm_90"],
    "mem_get_info": (MEMORY_BYTES, MEMORY_BYTES),
    "memory_stats": Counter(),
    "memory_stats_as_nested_dict": {},
    "memory_summary": "(a trace uses no GPU memory)",
    "memory_snapshot": [],
    "is_current_stream_capturing": False,
    "can_device_access_peer": False,
    "get_rng_state_all": [],
    "initial_seed": 0,
    "utilization": 0,
    "temperature": 0,
    "power_draw": 0,
    "clock_rate": 0,
    "get_sync_debug_mode": 0,
    **dict.fromkeys(
        [
            "memory_allocated",
            "max_memory_allocated",
            "memory_reserved",
            "max_memory_reserved",
            "memory_cached",
            "max_memory_cached",
            "memory_usage",
            "list_gpu_processes",
        ],
        0,
    ),
}
"""Fixed answers, independent of the arguments. All other functions do nothing."""
MODULES: Final = (torch.cuda, torch.cuda.memory, torch.cuda.random, torch.cuda.nvtx, torch.cuda.profiler)
CUDA_VERSION: Final = "13.0"
CUDNN_VERSION: Final = 91002
"""Of the PyTorch that the estimate was fitted with, for scripts that ask."""
KEPT: Final = frozenset({"cudart", "default_generators"})
TYPES: Final = {
    "FloatTensor": torch.float32, "HalfTensor": torch.float16, "DoubleTensor": torch.float64,
    "LongTensor": torch.int64, "IntTensor": torch.int32, "ByteTensor": torch.uint8, "BoolTensor": torch.bool,
    "BFloat16Tensor": torch.bfloat16,
}  # fmt: skip


class Quiet:
    """An event, a stream, a graph or a device. Supports `with`, waiting and timing."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.device_index = 0
        self.cuda_stream = 0
        self.device = "cuda:0"

    def __enter__(self) -> "Quiet":
        return self

    def __exit__(self, *error: object) -> None:
        return None

    def elapsed_time(self, *args: Any) -> float:
        return 1.0

    def query(self) -> bool:
        return True

    def is_capturing(self) -> bool:
        return False

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *args, **kwargs: None


class _AnyGenerator(type(torch.Generator)):  # type: ignore[misc]
    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, _Generator.__base__)


class _Generator(torch.Generator, metaclass=_AnyGenerator):
    """Also of random numbers on the GPU, which have no values: a build without CUDA cannot make one."""

    def __new__(cls, device: Any = "cpu") -> "_Generator":
        made = super().__new__(cls, "cpu")
        made.where = torch.device(device)
        return made

    @property
    def device(self) -> Any:
        return self.where


class Properties(types.SimpleNamespace):
    def __init__(self, *args: Any) -> None:
        super().__init__(
            name="NVIDIA H200", major=9, minor=0, total_memory=MEMORY_BYTES, multi_processor_count=132,
            max_threads_per_multi_processor=2048, warp_size=32, is_integrated=0, is_multi_gpu_board=0,
            gcnArchName="", regs_per_multiprocessor=65536, shared_memory_per_block_optin=232448,
            L2_cache_size=62914560, uuid="GPU-0",
        )  # fmt: skip


def device_patches() -> Iterator[Any]:
    # PyTorch loads this at the first operation, and before 2.8 it refuses events that are not its own.
    importlib.import_module("torch._dynamo.device_interface")
    for module in (*MODULES, getattr(torch, "accelerator", None)):
        if module is not None:
            yield from _functions_of(module)
    for name in ("Event", "Stream", "ExternalStream", "CUDAGraph", "device", "device_of", "StreamContext"):
        yield mock.patch.object(torch.cuda, name, Quiet, create=True)
    for name in ("stream", "current_stream", "default_stream", "graph"):
        yield mock.patch.object(torch.cuda, name, Quiet, create=True)
    for name in ("_record_memory_history", "_dump_snapshot", "_snapshot"):
        yield mock.patch.object(torch.cuda.memory, name, _answering(None), create=True)
    yield mock.patch.object(torch.version, "cuda", torch.version.cuda or CUDA_VERSION)
    yield mock.patch.object(torch.backends.cudnn, "version", lambda: CUDNN_VERSION)
    yield mock.patch.object(torch, "Generator", _Generator)
    yield mock.patch.object(torch, "Event", Quiet, create=True)
    yield mock.patch.object(torch, "Stream", Quiet, create=True)
    yield mock.patch.object(torch.Tensor, "record_stream", lambda self, stream: None)
    yield mock.patch.object(torch.cuda, "get_device_properties", Properties)
    yield mock.patch.object(torch.cuda, "get_rng_state", lambda *args, **kwargs: torch.get_rng_state())
    yield mock.patch.object(torch.cuda, "_lazy_init", lambda: None)
    for name, dtype in TYPES.items():
        yield mock.patch.object(torch.cuda, name, _legacy(name, dtype), create=True)
    if hasattr(torch, "accelerator"):
        there = torch.device("cuda")
        yield mock.patch.object(torch.accelerator, "current_accelerator", lambda *args, **kwargs: there)
        yield mock.patch.object(torch.accelerator, "current_stream", Quiet)
    for name in ("_cuda_graph_capture_health_check", "_accelerator_graph_capture_health_check"):
        if hasattr(torch.optim.Optimizer, name):
            yield mock.patch.object(torch.optim.Optimizer, name, lambda self: None)


def _functions_of(module: Any) -> Iterator[Any]:
    for name in sorted(vars(module)):
        each = getattr(module, name)
        if name.startswith("_") or not isinstance(each, types.FunctionType) or name in KEPT:
            continue
        if each.__module__.startswith(("torch.cuda", "torch.accelerator")):
            yield mock.patch.object(module, name, _answering(_ANSWERS.get(name)))


def _answering(answer: Any) -> Callable[..., Any]:
    return lambda *args, **kwargs: answer


def _legacy(name: str, dtype: Any) -> Callable[..., Any]:
    """`torch.cuda.FloatTensor(…)` from data or a size."""

    def made(*args: Any) -> Any:
        if len(args) == 1 and not isinstance(args[0], int):
            return torch.as_tensor(args[0]).to("cuda", dtype)
        return torch.empty(*args, dtype=dtype, device="cuda")

    made.teraflock_type = f"torch.cuda.{name}"  # type: ignore[attr-defined]
    return made
