"""Letting scripts believe that there is one CUDA device: autocast works on it, and asking about it answers."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Final
from unittest import mock

import torch
import torch.utils.checkpoint

from teraflock.workload.tracing.autocast import Autocast
from teraflock.workload.tracing.cuda import CudaChoices, is_cuda, on_cpu
from teraflock.workload.tracing.kernels import takes_fast_attention

DEVICES = ("cuda", "cpu")
"""Fake tensors lie on the CPU, so code that asks a tensor for its device speaks of that one."""
_ANSWERS: Final[dict[str, Any]] = {
    "is_available": True,
    "device_count": 1,
    "current_device": 0,
    "is_bf16_supported": True,
    "get_device_name": "NVIDIA H200",
    "get_device_capability": (9, 0),
    **dict.fromkeys(
        ("memory_allocated", "max_memory_allocated", "memory_reserved", "max_memory_reserved"), 0
    ),
    **dict.fromkeys(
        (
            "synchronize",
            "empty_cache",
            "set_device",
            "reset_peak_memory_stats",
            "manual_seed",
            "manual_seed_all",
        )
    ),
}
"""What `torch.cuda` says, whatever it is asked with."""

_Patches = Iterator[Any]


@contextmanager
def pretending(choices: CudaChoices) -> Iterator[None]:
    with ExitStack() as stack:
        for patches in (_autocast(choices.autocast), _functions(choices), _device(), _modules()):
            for patch in patches:
                stack.enter_context(patch)
        yield


def _autocast(state: Autocast) -> _Patches:
    autocast = torch.amp.autocast_mode.autocast
    real_init, real_enter, real_exit = autocast.__init__, autocast.__enter__, autocast.__exit__

    def init(
        self: Any, device_type: str, dtype: Any = None, enabled: bool = True, cache_enabled: Any = None
    ) -> None:
        if device_type not in DEVICES:
            return real_init(self, device_type, dtype, enabled, cache_enabled)
        self.device, self.fast_dtype, self._enabled = device_type, dtype or torch.float16, enabled
        self.teraflock_cuda = True
        self._cache_enabled, self.prev_cache_enabled = True, True
        return None

    def enter(self: Any) -> Any:
        if not getattr(self, "teraflock_cuda", False):
            return real_enter(self)
        state.enter(self._enabled, self.fast_dtype)
        return self

    def leave(self: Any, *error: Any) -> Any:
        if not getattr(self, "teraflock_cuda", False):
            return real_exit(self, *error)
        state.leave()
        return False

    def enabled(device_type: str = "cuda") -> bool:
        return device_type in DEVICES and state.dtype is not None

    def dtype_of(device_type: str = "cuda") -> Any:
        return state.dtype or (torch.float16 if device_type == "cuda" else torch.bfloat16)

    yield mock.patch.object(autocast, "__init__", init)
    yield mock.patch.object(autocast, "__enter__", enter)
    yield mock.patch.object(autocast, "__exit__", leave)
    yield mock.patch.object(torch, "is_autocast_enabled", enabled)
    yield mock.patch.object(torch, "get_autocast_dtype", dtype_of)
    yield mock.patch.object(torch, "get_autocast_gpu_dtype", dtype_of)


def _functions(choices: CudaChoices) -> _Patches:
    """What PyTorch calls past the mode, or would ask it twice."""
    real_has = torch.nn.functional.has_torch_function
    checkpoint = torch.utils.checkpoint
    real_generator = checkpoint._checkpoint_without_reentrant_generator
    real_function = checkpoint.CheckpointFunction

    def has_torch_function(tensors: Any) -> bool:
        if choices.enter_next:
            choices.enter_next = False
            return False
        return bool(real_has(tensors))

    class Reentrant:
        @staticmethod
        def apply(function: Any, *args: Any) -> Any:
            return real_function.apply(choices.within(function), *args)

    def generator(function: Any, *args: Any, **kwargs: Any) -> Any:
        return real_generator(choices.within(function), *args, **kwargs)

    real_has_any = torch.overrides.has_torch_function
    real_attention = torch.nn.MultiheadAttention.forward

    def has_any(tensors: Any) -> bool:
        return bool(real_has_any(tensors)) and not choices.is_fast

    def multihead(
        self: Any, query: Any, key: Any, value: Any, key_padding_mask: Any = None, need_weights: bool = True,
        attn_mask: Any = None, **rest: Any,
    ) -> Any:  # fmt: skip
        mask = attn_mask if key_padding_mask is None else key_padding_mask
        choices.is_fast = takes_fast_attention(self, query, key, value, need_weights, mask)
        try:
            return real_attention(
                self, query, key, value, key_padding_mask, need_weights, attn_mask=attn_mask, **rest
            )
        finally:
            choices.is_fast = False

    yield mock.patch.object(torch.overrides, "has_torch_function", has_any)
    yield mock.patch.object(torch.nn.MultiheadAttention, "forward", multihead)
    yield mock.patch.object(checkpoint, "_checkpoint_without_reentrant_generator", generator)
    yield mock.patch.object(checkpoint, "CheckpointFunction", Reentrant)
    yield mock.patch.object(torch.nn.functional, "has_torch_function", has_torch_function)


def _device() -> _Patches:
    def answering(answer: Any) -> Callable[..., Any]:
        return lambda *args, **kwargs: answer

    for name, answer in _ANSWERS.items():
        yield mock.patch.object(torch.cuda, name, answering(answer))


def _modules() -> _Patches:
    yield mock.patch.object(torch.nn.Module, "cuda", lambda self, device=None: self)
    yield mock.patch.object(torch.Tensor, "cuda", lambda self, *args, **kwargs: self)
    yield mock.patch.object(torch.nn.Module, "_apply", _apply)
    yield mock.patch.object(torch.nn.Module, "to", _module_to(torch.nn.Module.to))


def _apply(self: Any, function: Any, recurse: bool = True) -> Any:
    """`Module._apply` as it works on CUDA: in place. On fake tensors PyTorch would swap them, and fail."""
    if recurse:
        for child in self.children():
            child._apply(function)
    with torch.no_grad():
        for parameter in self._parameters.values():
            if parameter is not None:
                new = function(parameter)
                if new is not parameter and new.dtype != parameter.dtype:
                    parameter.data = new
    for name, buffer in self._buffers.items():
        if buffer is not None:
            self._buffers[name] = function(buffer)
    return self


def _module_to(real: Any) -> Any:
    def to(self: Any, *args: Any, **kwargs: Any) -> Any:
        args = tuple("cpu" if is_cuda(each) else each for each in args)
        return real(self, *args, **on_cpu(kwargs))

    return to
