"""Sharded models (FSDP), traced as one process: parameters are whole and on the GPU, and cast to the type asked for."""

import contextlib
import functools
from collections.abc import Iterator
from typing import Any, Final
from unittest import mock

import torch
import torch.distributed.fsdp as fsdp

from teraflock.workload.tracing.unknown import Notes

SAID: Final = (
    "a sharded model is traced as one process with whole weights; `tera plan --shard --gpus N` divides them"
)


def sharding_patches(notes: Notes) -> Iterator[Any]:
    kind = fsdp.FullyShardedDataParallel

    def init(self: Any, module: Any, *args: Any, mixed_precision: Any = None, **kwargs: Any) -> None:
        torch.nn.Module.__init__(self)
        notes.add(SAID)
        self._fsdp_wrapped_module = _placed(module)
        self.training_state = None
        self.teraflock_dtype = getattr(mixed_precision, "param_dtype", None)

    def forward(self: Any, *args: Any, **kwargs: Any) -> Any:
        return _in_type(self._fsdp_wrapped_module, self.teraflock_dtype, args, kwargs)

    def clip(self: Any, *args: Any, **kwargs: Any) -> Any:
        return torch.nn.utils.clip_grad_norm_(self.parameters(), *args, **kwargs)

    yield mock.patch.object(kind, "__init__", init)
    yield mock.patch.object(kind, "forward", forward)
    yield mock.patch.object(kind, "clip_grad_norm_", clip)
    yield mock.patch.object(kind, "apply", torch.nn.Module.apply)
    for name in ("no_sync", "summon_full_params", "state_dict_type"):
        yield mock.patch.object(kind, name, lambda *args, **kwargs: contextlib.nullcontext())
    for name in (
        "set_state_dict_type",
        "optim_state_dict",
        "optim_state_dict_to_load",
        "full_optim_state_dict",
    ):
        yield mock.patch.object(kind, name, lambda *args, **kwargs: {})
    if hasattr(fsdp, "fully_shard"):
        yield mock.patch.object(fsdp, "fully_shard", functools.partial(_fully_shard, notes))


def _fully_shard(notes: Notes, module: Any, *args: Any, mp_policy: Any = None, **kwargs: Any) -> Any:
    """The function of FSDP 2, which changes a module in place. Parts were sharded before the whole."""
    notes.add(SAID)
    _placed(module)
    dtype = module.teraflock_dtype = getattr(mp_policy, "param_dtype", None)
    if dtype is not None:

        def forward(*args: Any, **kwargs: Any) -> Any:
            del module.forward
            try:
                return _in_type(module, dtype, args, kwargs)
            finally:
                module.forward = forward

        module.forward = forward
    for name in ("set_requires_gradient_sync", "set_is_last_backward", "unshard", "reshard"):
        setattr(module, name, lambda *args, **kwargs: None)
    return module


def _placed(module: Any) -> Any:
    if any(each.is_meta for each in module.parameters()):
        return module.to_empty(device="cuda")
    return module.cuda()


def _in_type(module: Any, dtype: Any, args: Any, kwargs: Any) -> Any:
    """The forward pass with copies of the parameters in another type; gradients go back to the parameters."""
    if dtype is None:
        return module(*args, **kwargs)

    def cast(value: Any) -> Any:
        is_number = isinstance(value, torch.Tensor) and value.is_floating_point()
        return value.to(dtype) if is_number and value.dtype != dtype else value

    copies = {name: cast(each) for name, each in module.named_parameters()}
    return torch.func.functional_call(
        module, copies, tuple(cast(each) for each in args), {key: cast(each) for key, each in kwargs.items()}
    )
