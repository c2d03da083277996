"""Watches a run: forward passes of outermost modules, backward passes, optimizer steps and batches, in order.

A forward pass without gradients, with the same module and shapes as two before it, is not computed again. It would add
no information, and an evaluation over a dataset would take too long.
"""

import importlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Final
from unittest import mock
from weakref import WeakKeyDictionary

import msgspec
import torch
from torch._subclasses.fake_tensor import FakeTensor

from teraflock.workload.trace import Mark
from teraflock.workload.tracing.cuda import CudaChoices, moved_to
from teraflock.workload.tracing.loading import images_in, loading_patches
from teraflock.workload.tracing.recorder import Recorder
from teraflock.workload.tracing.side import Side, Sides, tensors_in, unwrapped
from teraflock.workload.tracing.steps import BACKWARD, EVALUATION, FORWARD, GRADIENT, LOAD, STEP, Happening
from teraflock.workload.tracing.unknown import Notes

REPEATS_COMPUTED: Final = 2
CLOSURE: Final = (
    "The optimizer calls the script's closure. How often it does so in a step depends on values that only a GPU would"
    " compute"
)


class TraceWatch:
    """`asked` is called whenever a step may be complete. It raises an exception when a step was found."""

    def __init__(
        self,
        recorder: Recorder,
        sides: Sides,
        choices: CudaChoices,
        notes: Notes,
        asked: Callable[[str], None],
        times: int = 1,
    ) -> None:
        self.recorder, self.sides, self.choices, self.notes = recorder, sides, choices, notes
        self.asked = asked
        self.times = times
        self.run: list[Happening] = []
        self.optimizers: dict[int, Any] = {}
        self.modules: list[Any] = []
        """Outermost modules that were called, in order."""
        self.learning: set[int] = set()
        """Those that were called with gradients. Others, such as a teacher, need no optimizer."""
        self.trained: set[int] = set()
        self.views: list[tuple[int, int]] = []
        self.evaluations: list[tuple[int, int]] = []
        self.autocast: Any = None
        self.input_shape: tuple[int, ...] = ()
        self.outer = 0
        self._has_parameters: WeakKeyDictionary[Any, bool] = WeakKeyDictionary()
        self._repeats: dict[Any, tuple[int, Any, Any]] = {}
        self._input_at = -1
        self._is_backward = False
        self._is_stepping = False
        self._backwards = 0
        """Backward passes since the optimizer's step began."""
        self._second = 0
        self._reads: dict[int, int] = {}

    @contextmanager
    def watching(self) -> Iterator[None]:
        optimizer_module = importlib.import_module("torch.optim.optimizer")
        with ExitStack() as stack:
            for register, hook in (
                (optimizer_module.register_optimizer_step_pre_hook, self._before_step),
                (optimizer_module.register_optimizer_step_post_hook, self._after_step),
            ):
                stack.callback(register(hook).remove)
            for patch in self._patches(optimizer_module):
                stack.enter_context(patch)
            yield

    def _patches(self, optimizer_module: Any) -> Iterator[Any]:
        yield mock.patch.object(torch.nn.Module, "__call__", self._calling(torch.nn.Module.__call__))
        for name in ("backward", "grad"):
            yield mock.patch.object(torch.autograd, name, self._backward(getattr(torch.autograd, name), name))
        engine = torch.autograd._engine_run_backward
        yield mock.patch.object(torch.autograd, "_engine_run_backward", self.choices.within(engine))
        real_init = torch.optim.Optimizer.__init__

        def init(optimizer: Any, *args: Any, **kwargs: Any) -> None:
            real_init(optimizer, *args, **kwargs)
            self._know(optimizer)

        def step(scaler: Any, optimizer: Any, state: Any, *args: Any, **kwargs: Any) -> Any:
            for each in state["found_inf_per_device"].values():
                self.recorder.waited(each)
            return optimizer.step(*args, **kwargs)  # values are unknown: assume that no gradient is infinite

        yield mock.patch.object(torch.optim.Optimizer, "__init__", init)
        yield mock.patch.object(torch.amp.GradScaler, "_maybe_opt_step", step)
        yield from foreach_patches(optimizer_module)
        yield from foreach_patches(importlib.import_module("torch.utils._foreach_utils"))
        yield from loading_patches(
            self.notes, lambda samples: self._happened(Happening(LOAD, samples=samples)), self.times
        )

    def _know(self, optimizer: Any) -> None:
        self.optimizers[id(optimizer)] = optimizer
        self.trained |= {id(each) for group in optimizer.param_groups for each in group["params"]}

    def _happened(self, happening: Happening) -> None:
        self.run.append(happening)
        self.views.append((len(self.recorder.events), self.recorder.views))

    # Forward passes.

    def _calling(self, real: Any) -> Any:
        def called(module: Any, *args: Any, **kwargs: Any) -> Any:
            if self.outer or not self._counts(module):
                if self.choices.autocast.dtype is not None and torch.is_grad_enabled():
                    self.autocast = self.choices.autocast.dtype  # some scripts wrap `forward` in it
                if isinstance(module, torch.nn.RNNBase) and not module.batch_first and args:
                    self._second = int(args[0].shape[1]) if args[0].dim() == 3 else 0
                return real(module, *args, **kwargs)
            if self.sides.assume:
                args, kwargs = self._taken_over(module, args, kwargs)
            return self._forward(real, module, args, kwargs)

        return called

    def _counts(self, module: Any) -> bool:
        if module not in self._has_parameters:
            self._has_parameters[module] = next(iter(module.parameters()), None) is not None
        return self._has_parameters[module]

    def _forward(self, real: Any, module: Any, args: Any, kwargs: Any) -> Any:
        given = [unwrapped(each) for each in tensors_in((args, kwargs))]  # with the samples of a `vmap`
        evaluates = self._evaluates(module)
        begin = len(self.recorder.events)
        shape = tuple(int(each) if isinstance(each, int) else -1 for each in given[0].shape) if given else ()
        kind = EVALUATION if evaluates else FORWARD
        samples = images_in(args) or (shape[0] if shape and shape[0] > 0 else 0)
        self.recorder.leaves.is_on = False
        if all(each is not module for each in self.modules):
            self.modules.append(module)
        if torch.is_grad_enabled():
            self.learning.add(id(module))
        reads = self.sides.reads
        is_answer, self._reads[id(module)] = reads > self._reads.get(id(module), reads), reads
        self._happened(
            Happening(kind, id(module), begin, samples, shape, not torch.is_grad_enabled(), is_answer)
        )
        self._note_input(module, given, evaluates)
        self.asked(kind)
        place = len(self.run) - 1
        self.outer, self._second = self.outer + 1, 0
        try:
            out = self._computed(real, module, args, kwargs)
        finally:
            self.outer -= 1
            self.sides.reads = reads  # what a module reads for itself is no answer to anything
        if self._second and len(shape) > 1 and shape[0] != self._second == shape[1]:
            # A recurrent net with time first: the batch is the second dimension.
            self.run[place] = msgspec.structs.replace(self.run[place], samples=self._second)
        if evaluates:
            self.evaluations.append((begin, len(self.recorder.events)))
        return out

    def _evaluates(self, module: Any) -> bool:
        if torch.is_grad_enabled() or module.training:
            return False
        return not self.trained or any(id(each) in self.trained for each in module.parameters())

    def _note_input(self, module: Any, given: list[Any], evaluates: bool) -> None:
        if self.choices.autocast.dtype is not None and (not evaluates or not self.trained):
            self.autocast = self.choices.autocast.dtype
        self.recorder.tag(module.parameters(), "p")
        self.recorder.tag(module.buffers(), "b")
        batch = [each for each in given if self.sides.is_gpu(each)]
        steps = sum(each.kind == STEP for each in self.run)
        is_aside = bool(self.trained) and not torch.is_grad_enabled()  # an evaluation, a teacher, a rollout
        if batch and steps != self._input_at and not is_aside:
            self._input_at = steps  # the first module of a step gets the batch, later ones get activations
            self.recorder.tag(batch, "i")
            self.input_shape = tuple(int(n) if isinstance(n, int) else -1 for n in batch[0].shape)

    def _computed(self, real: Any, module: Any, args: Any, kwargs: Any) -> Any:
        key = (
            None if torch.is_grad_enabled() else _signature(module, args, kwargs, self.choices.autocast.dtype)
        )
        if key is None:
            return real(module, *args, **kwargs)
        count, known, part = self._repeats.get(key, (0, None, None))
        if count >= REPEATS_COMPUTED and known is not None:
            self.recorder.repeat(*part)
            return self._again(known)
        begin = self.recorder.position()
        out = real(module, *args, **kwargs)
        self._repeats[key] = (count + 1, self._pattern(out), (begin, self.recorder.position()))
        return out

    def _pattern(self, out: Any) -> Any:
        """What is needed to create such an output again. None if that is unknown."""
        if isinstance(out, FakeTensor) and self.sides.is_gpu(out):
            return ("tensor", tuple(out.shape), out.dtype)
        if type(out) in (list, tuple) or (isinstance(out, dict) and hasattr(out, "keys")):
            parts = [self._pattern(each) for each in (out.values() if isinstance(out, dict) else out)]
            if any(each is None for each in parts):
                return None
            return ("parts", type(out), list(out) if isinstance(out, dict) else None, parts)
        return ("value", out) if out is None or isinstance(out, (int, float, str, bool)) else None

    def _again(self, pattern: Any) -> Any:
        if pattern[0] == "tensor":
            return torch.empty(pattern[1], dtype=pattern[2], device="cuda")
        if pattern[0] == "value":
            return pattern[1]
        parts = [self._again(each) for each in pattern[3]]
        return (
            pattern[1](parts) if pattern[2] is None else pattern[1](dict(zip(pattern[2], parts, strict=True)))
        )

    def _taken_over(self, module: Any, args: Any, kwargs: Any) -> tuple[Any, Any]:
        """The script never names a GPU: its model and inputs count as being on it."""
        module.cuda()

        def there(value: Any) -> Any:
            if isinstance(value, torch.Tensor):
                return moved_to(self.sides, value, Side.GPU)
            if type(value) in (list, tuple):
                return type(value)([there(each) for each in value])
            return {key: there(each) for key, each in value.items()} if type(value) is dict else value

        return there(args), {key: there(each) for key, each in kwargs.items()}

    # Backward passes and steps.

    def _backward(self, real: Any, name: str) -> Any:
        def backward(*args: Any, **kwargs: Any) -> Any:
            recorder = self.recorder
            if self._is_backward:  # PyTorch calls itself again, or a checkpoint does so within the pass
                return real(*args, **kwargs)
            self._is_backward = True
            if name == "backward":
                self._happened(self._pass(BACKWARD, is_aside=self._is_stepping))
                self._backwards += 1
                if self._is_stepping and self._backwards > 1:
                    self.notes.add(CLOSURE)
            elif self._has_parameter(args[1] if len(args) > 1 else kwargs.get("inputs")):
                self._happened(self._pass(GRADIENT))
            if recorder.leaves.is_on:  # otherwise a forward pass tells where a step begins
                self.asked(BACKWARD)
            recorder.mark(Mark.BACKWARD)
            phase, recorder.phase = recorder.phase, "t"
            self.outer += 1  # a recomputed segment is not a forward pass of its own
            try:
                return real(*args, **kwargs)
            finally:
                self._is_backward = False
                self.outer -= 1
                recorder.phase = phase
                recorder.mark(Mark.FORWARD)
                if name == "backward":
                    self.recorder.tag(self._gradients(), "g")

        return backward

    def _pass(self, kind: str, *, is_aside: bool = False) -> Happening:
        """A backward pass. Without modules, it has the samples of the step."""
        shape = self.recorder.leaves.taken()
        if shape:
            self.input_shape = shape
        return Happening(
            kind, at=len(self.recorder.events), samples=max(0, shape[0]) if shape else 0, is_aside=is_aside
        )

    def _has_parameter(self, inputs: Any) -> bool:
        bare = self.recorder.leaves.is_on
        return any(self.recorder.kind(each) == "p" or (bare and each.is_leaf) for each in tensors_in(inputs))

    def _gradients(self) -> Iterator[Any]:
        for optimizer in self.optimizers.values():
            for group in optimizer.param_groups:
                for each in group["params"]:
                    if each.grad is not None:
                        yield each.grad

    def _before_step(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        self._is_stepping, self._backwards = True, 0
        self._know(optimizer)
        parameters = [each for group in optimizer.param_groups for each in group["params"]]
        self.recorder.tag(parameters, "p")
        self.recorder.tag([each.grad for each in parameters if each.grad is not None], "g")
        self.recorder.mark(Mark.OPTIMIZER)
        self.recorder.phase = "t"

    def _after_step(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        self._is_stepping = False
        states = [value for state in optimizer.state.values() for value in _leaves(state)]
        self.recorder.tag([each for each in states if isinstance(each, torch.Tensor)], "o")
        self.recorder.phase = "a"
        self.recorder.mark(Mark.FORWARD)
        self._happened(Happening(STEP, id(optimizer), len(self.recorder.events)))
        self.asked(STEP)


def _leaves(state: Any) -> list[Any]:
    return list(state.values()) if isinstance(state, dict) else []


def _signature(module: Any, args: Any, kwargs: Any, dtype: Any) -> Any:
    """What determines the operations of a forward pass. None if that is unknown."""

    def sign(value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return (tuple(value.shape), value.dtype, isinstance(value, FakeTensor))
        if type(value) in (list, tuple):
            return tuple(sign(each) for each in value)
        if value is None or isinstance(value, (int, float, str, bool)):
            return value
        raise TypeError

    try:
        known = (id(module), module.training, str(dtype), sign(args), sign(sorted(kwargs.items())))
        hash(known)
    except TypeError:
        return None
    return known


def foreach_patches(module: Any) -> Iterator[Any]:
    """Optimizers and clipping process whole lists of plain CUDA tensors at once. Our tensors count as such."""
    devices = [*module._get_foreach_kernels_supported_devices(), "cpu"]
    types = [*module._foreach_supported_types, FakeTensor]
    yield mock.patch.object(module, "_get_foreach_kernels_supported_devices", lambda: devices)
    yield mock.patch.object(module, "_foreach_supported_types", types)
