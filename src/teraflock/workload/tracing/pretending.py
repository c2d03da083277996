"""Makes scripts see one CUDA device: autocast works on it, and queries about it have answers."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

import torch
import torch.utils.checkpoint
from torch._subclasses.fake_tensor import FakeTensor

from teraflock.workload.tracing.autocast import Autocast
from teraflock.workload.tracing.cuda import GPU, CudaChoices, is_cuda, moved_to, on_cpu
from teraflock.workload.tracing.device import device_patches
from teraflock.workload.tracing.kernels import takes_fast_attention
from teraflock.workload.tracing.side import Side

DEVICES = ("cuda", "cpu")
"""Autocast for both: a script that is traced as if on the GPU may name the CPU."""

_Patches = Iterator[Any]


@contextmanager
def pretending(choices: CudaChoices) -> Iterator[None]:
    with ExitStack() as stack:
        for patches in (
            _autocast(choices.autocast),
            _functions(choices),
            device_patches(),
            _default_device(choices),
            _modules(choices),
        ):
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


def _default_device(choices: CudaChoices) -> _Patches:
    """PyTorch would ask for the default device after our mode, where it is too late."""
    real, real_type = torch.set_default_device, torch.set_default_tensor_type

    def set_default_device(device: Any) -> None:
        choices.creates_on_gpu = is_cuda(device)
        if not choices.creates_on_gpu:
            real(device)

    def set_default_tensor_type(kind: Any) -> None:
        word = kind if isinstance(kind, str) else getattr(kind, "teraflock_type", "")
        choices.creates_on_gpu = word.startswith("torch.cuda.")
        real_type(word.replace("torch.cuda.", "torch.") or kind)

    yield mock.patch.object(torch, "set_default_device", set_default_device)
    yield mock.patch.object(torch, "set_default_tensor_type", set_default_tensor_type)


def _functions(choices: CudaChoices) -> _Patches:
    """Functions that PyTorch calls without the mode, or would ask it twice."""
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
    checks = {"default": lambda tensor: {"shape": tensor.shape, "dtype": tensor.dtype}}
    yield mock.patch.dict(checkpoint._allowed_determinism_checks_to_fns, checks)
    yield mock.patch.object(checkpoint, "get_device_states", lambda *args: ([], []))
    yield mock.patch.object(checkpoint, "set_device_states", lambda *args, **kwargs: None)
    yield mock.patch.object(torch.nn.MultiheadAttention, "forward", multihead)
    yield mock.patch.object(checkpoint, "_checkpoint_without_reentrant_generator", generator)
    yield mock.patch.object(checkpoint, "CheckpointFunction", Reentrant)
    yield mock.patch.object(torch.nn.functional, "has_torch_function", has_torch_function)


def _modules(choices: CudaChoices) -> _Patches:
    if choices.sides is None:
        yield mock.patch.object(torch.nn.Module, "cuda", lambda self, device=None: self)
        yield mock.patch.object(torch.Tensor, "cuda", lambda self, *args, **kwargs: self)
        yield mock.patch.object(torch.nn.Module, "_apply", _apply(lambda parameter: False))
        yield mock.patch.object(torch.nn.Module, "to", _module_to(torch.nn.Module.to))
        return
    sides = choices.sides
    real_new = torch.nn.Parameter.__new__

    def born(cls: Any, data: Any = None, requires_grad: bool = True) -> Any:
        """Parameters have a shape and no values from the start, so models of any size can be built."""
        if type(data) is torch.Tensor and data.device.type == "cpu":
            data = moved_to(sides, data, Side.GPU) if sides.assume else sides.hosted(data)
        return real_new(cls, data, requires_grad)

    def to(self: Any, *args: Any, **kwargs: Any) -> Any:
        """A device may be a plain number, which a build without CUDA cannot parse."""
        args = tuple(GPU if isinstance(each, int) and not isinstance(each, bool) else each for each in args)
        if isinstance(kwargs.get("device"), int):
            kwargs = {**kwargs, "device": GPU}
        return real_to(self, *args, **kwargs)

    real_to = torch.nn.Module.to
    yield mock.patch.object(torch.nn.Module, "to", to)
    yield mock.patch.object(torch.backends.cudnn, "is_acceptable", lambda tensor: False)
    yield mock.patch.object(torch.nn.RNNBase, "flatten_parameters", lambda self: None)
    yield mock.patch.object(torch.nn.Parameter, "__new__", born)
    yield mock.patch.object(torch.nn.Module, "_apply", _apply(sides.is_gpu))
    if "tolist" in vars(FakeTensor):  # before PyTorch 2.6 it answers before any mode is asked
        yield mock.patch.object(FakeTensor, "tolist", lambda self: torch.Tensor.tolist(self))
    yield mock.patch.object(FakeTensor, "device", property(_device_of(choices, FakeTensor.device.fget)))


def _device_of(choices: CudaChoices, real: Any) -> Any:
    sides = choices.sides
    assert sides is not None

    def device(self: Any) -> Any:
        if choices.inside or sides.depth or self.fake_mode.in_kernel_invocation or not sides.is_gpu(self):
            return real(self)
        return GPU

    return device


def _apply(is_gpu: Callable[[Any], bool]) -> Any:
    def apply(self: Any, function: Any, recurse: bool = True) -> Any:
        """`Module._apply` as on CUDA: in place. For fake tensors PyTorch would swap them and fail."""
        if recurse:
            for child in self.children():
                child._apply(function)
        for name, parameter in self._parameters.items():
            if parameter is not None:
                with torch.no_grad():
                    new = function(parameter)
                if new is not parameter:
                    self._parameters[name] = _replaced(parameter, new, is_gpu)
        for name, buffer in self._buffers.items():
            if buffer is not None:
                self._buffers[name] = function(buffer)
        return self

    return apply


def _replaced(parameter: Any, new: Any, is_gpu: Callable[[Any], bool]) -> Any:
    if not isinstance(parameter, FakeTensor) or new.device.type == "meta":  # from or to the `meta` device
        return torch.nn.Parameter(new, parameter.requires_grad)
    is_same = new.dtype == parameter.dtype and new.stride() == parameter.stride()
    if not is_same or is_gpu(new) != is_gpu(parameter):
        parameter.data = new
    return parameter


def _module_to(real: Any) -> Any:
    def to(self: Any, *args: Any, **kwargs: Any) -> Any:
        args = tuple("cpu" if is_cuda(each) else each for each in args)
        return real(self, *args, **on_cpu(kwargs))

    return to
