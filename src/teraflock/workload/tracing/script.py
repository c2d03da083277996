"""Running a user's script for two steps, with shapes and without numbers, and the trace of it.

The first step belongs to the setting up, since it makes the optimizer's state; the second is the step that
is timed. After it the script is stopped. A script that cannot be traced is told by line and reason.
"""

import contextlib
import importlib
import inspect
import logging
import os
import runpy
import sys
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from unittest import mock

import torch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode

from teraflock.base.errors import BadInput
from teraflock.workload.trace import Mark, Trace
from teraflock.workload.tracing.cuda import CudaChoices
from teraflock.workload.tracing.failure import explained
from teraflock.workload.tracing.pretending import pretending
from teraflock.workload.tracing.recorder import DTYPES, Recorder

STEPS = 2
BATCH_HINT = 6
OFFLINE = ("HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE")
"""A trace takes no weights and no data: libraries that would fetch some are told so, and fail at once."""


class _Enough(BaseException):
    """Ends the script after its second step; no `except Exception` of the script may hold it up."""


def trace_script(script: Path, *, arguments: list[str] | None = None) -> Trace:
    """The trace of a Python file that trains at its top level or under `__main__`."""
    if not script.is_file():
        raise BadInput(f"There is no file `{script}`")

    def run() -> None:
        with mock.patch.object(sys, "argv", [str(script), *(arguments or [])]):
            runpy.run_path(str(script), run_name="__main__")

    with _set_up(script.resolve().parent):
        return _Session(script.stem, script).record(run)


def trace_entry(entry: str, *, folder: Path) -> Trace:
    """The trace of `module:function`. A parameter called `batch` is given as a symbol: any batch is answered."""
    module_name, _, function_name = entry.partition(":")
    if not module_name or not function_name:
        raise BadInput(f"`{entry}` is no entry", hint="Write it as `module:function`")
    with _set_up(folder):
        function = _function(module_name, function_name, folder)
        session = _Session(function_name, Path(inspect.getsourcefile(function) or folder))
        if _wants_batch(function):
            return session.record(lambda: function(batch=session.symbol("batch", BATCH_HINT)), symbolic=True)
        return session.record(function)


def _function(module_name: str, function_name: str, folder: Path) -> Callable[..., Any]:
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name not in (module_name, module_name.partition(".")[0]):
            raise explained(error, name=module_name, folder=folder) from None
        raise BadInput(f"There is no module `{module_name}` in this folder") from None
    except (Exception, SystemExit) as error:
        raise explained(error, name=module_name, folder=folder) from None
    function = getattr(module, function_name, None)
    if not inspect.isfunction(function):
        raise BadInput(f"`{module_name}` has no function `{function_name}`")
    return function


def _wants_batch(function: Callable[..., Any]) -> bool:
    wanted = inspect.signature(function).parameters
    needed = [
        name
        for name, each in wanted.items()
        if each.default is each.empty and each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)
    ]
    others = [f"`{name}`" for name in needed if name != "batch"]
    if others:
        raise BadInput(
            f"`{function.__name__}` needs {', '.join(others)}, and a trace gives it `batch` alone",
            hint="Give the others defaults, or write a function around it",
        )
    return "batch" in wanted


class _Session:
    """One recording: hooks that see the steps, and what is known when they end."""

    def __init__(self, name: str, source: Path) -> None:
        self.name = name
        self.source = source
        self.folder = source.resolve().parent
        self.recorder, self.choices = Recorder(), CudaChoices()
        self.steps = 0
        self.samples = 0
        self.views_before = 0
        self.has_input = False
        self.has_model = False
        self.parameters: list[Any] = []
        self.autocast: Any = None
        self.symbols: dict[str, int] = {}
        self._env: Any = None
        self._names: dict[str, str] = {}
        self.choices.autocast.on_copy = self._copied

    def symbol(self, name: str, hint: int) -> Any:
        from torch._dynamo.source import ConstantSource
        from torch.fx.experimental.symbolic_shapes import DimDynamic

        made = self._env.create_symbol(
            hint, source=ConstantSource(name), dynamic_dim=DimDynamic.DYNAMIC, constraint_dim=None
        )
        self.symbols[name] = hint
        self._names[str(made)] = name
        return self._env.create_symintnode(made, hint=hint)

    def record(self, run: Callable[[], Any], *, symbolic: bool = False) -> Trace:
        if symbolic:
            from torch.fx.experimental.symbolic_shapes import ShapeEnv

            # What depends on values is refused at its line, as it is without symbols.
            self._env = ShapeEnv(allow_scalar_outputs=False, allow_dynamic_output_shape_ops=False)
        mode = FakeTensorMode(shape_env=self._env, allow_non_fake_inputs=True)
        with pretending(self.choices), self._eager(), self._hooks(), mode, self.recorder, self.choices:
            try:
                run()
            except _Enough:
                pass
            except SystemExit as error:
                if error.code not in (None, 0):
                    raise explained(error, name=self.name, folder=self.folder) from None
            except Exception as error:
                raise explained(error, name=self.name, folder=self.folder) from None
            finally:
                self.recorder.paused = True
            return self._trace()

    def _eager(self) -> Any:
        """Only for scripts that speak of transformers: importing it takes seconds."""
        text = self.source.read_text("utf-8", "ignore") if self.source.is_file() else ""
        if "transformers" in text and find_spec("transformers"):
            from teraflock.workload.tracing.eager import transformers_eager

            return transformers_eager()
        return contextlib.nullcontext()

    def _trace(self) -> Trace:
        recorder = self.recorder
        trained = self.steps > 0
        if self.steps < STEPS:
            if trained:
                raise BadInput(
                    "The script took one optimizer step and ended; two are needed",
                    hint="Let it run two or more",
                )
            if not recorder.operations:
                raise BadInput("The script computed nothing with PyTorch")
        recorder.mark(Mark.END)
        return Trace(
            name=self.name,
            torch=str(torch.__version__),
            symbols=self.symbols,
            expressions=[self._renamed(each) for each in recorder.expressions],
            operations=recorder.operations,
            parameters=[recorder.parameter(each) for each in self.parameters],
            events=recorder.events,
            kinds="".join(recorder.kinds),
            has_optimizer=True,
            has_backward=trained,
            precision=self._precision(),
            views=recorder.views - self.views_before,
            samples=self.samples,
        )

    def _renamed(self, each: Any) -> Any:
        if isinstance(each, str):
            return self._names[each]
        return [each[0], *[self._renamed(part) for part in each[1:]]] if isinstance(each, list) else each

    def _precision(self) -> str:
        if self.autocast is not None:
            return "amp-fp16" if self.autocast == torch.float16 else "amp-bf16"
        letters = {DTYPES.get(each.dtype, "f") for each in self.parameters}
        if letters == {"b"}:
            return "bf16"
        if letters == {"h"}:
            return "fp16"
        return "tf32" if torch.backends.cuda.matmul.allow_tf32 else "fp32"

    @contextlib.contextmanager
    def _hooks(self) -> Iterator[None]:
        optimizer_module = importlib.import_module("torch.optim.optimizer")
        before = optimizer_module.register_optimizer_step_pre_hook(self._before_step)
        after = optimizer_module.register_optimizer_step_post_hook(self._after_step)
        forward = torch.nn.modules.module.register_module_forward_pre_hook(self._before_forward)
        real_backward = torch.autograd.backward

        def backward(*args: Any, **kwargs: Any) -> Any:
            self.recorder.mark(Mark.BACKWARD)
            self.recorder.phase = "t"
            result = real_backward(*args, **kwargs)
            self.recorder.phase = "a"
            return result

        def step(scaler: Any, optimizer: Any, state: Any, *args: Any, **kwargs: Any) -> Any:
            return optimizer.step(*args, **kwargs)  # no number says whether a gradient is infinite: none is

        patches: list[Any] = [
            mock.patch.object(torch.autograd, "backward", backward),
            mock.patch.object(torch.amp.GradScaler, "_maybe_opt_step", step),
            *_foreach(optimizer_module),
            *_foreach(importlib.import_module("torch.utils._foreach_utils")),
        ]
        self.recorder.phase = "a"
        for patch in patches:
            patch.start()
        try:
            yield
        finally:
            for patch in reversed(patches):
                patch.stop()
            for handle in (before, after, forward):
                handle.remove()

    def _before_forward(self, module: Any, inputs: Any) -> None:
        if self.choices.autocast.dtype is not None:
            self.autocast = self.choices.autocast.dtype
        if not self.has_model:
            self.has_model = True  # the outermost is called first; its frozen parameters no optimizer names
            self.recorder.tag(module.parameters(), "p")
            self.recorder.tag(module.buffers(), "b")
        tensor = next((each for each in inputs if isinstance(each, torch.Tensor) and each.dim() > 1), None)
        if not self.samples and tensor is not None:
            self.samples = 0 if isinstance(tensor.shape[0], torch.SymInt) else int(tensor.shape[0])
        if tensor is not None and not self.has_input:
            self.has_input = True  # the first module of a step is given the batch, those after it activations
            self.recorder.tag([tensor], "i")

    def _before_step(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        self.parameters = [each for group in optimizer.param_groups for each in group["params"]]
        self.recorder.tag(self.parameters, "p")
        self.recorder.tag([each.grad for each in self.parameters if each.grad is not None], "g")
        self.recorder.mark(Mark.OPTIMIZER)
        self.recorder.phase = "t"

    def _after_step(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        states = [value for state in optimizer.state.values() for value in state.values()]
        self.recorder.tag([each for each in states if isinstance(each, torch.Tensor)], "o")
        self.recorder.phase = "a"
        self.steps += 1
        if self.steps == STEPS:
            raise _Enough
        self.views_before = self.recorder.views
        self.has_input = False
        self.has_model = False
        self.recorder.mark(Mark.STEP)

    def _copied(self, copy: Any) -> None:
        self.recorder.tag([copy], "c")


def _foreach(module: Any) -> list[Any]:
    """Optimizers and clipping take whole lists at once where these hold plain tensors on CUDA: ours count as such."""
    devices = [*module._get_foreach_kernels_supported_devices(), "cpu"]
    types = [*module._foreach_supported_types, FakeTensor]
    return [
        mock.patch.object(module, "_get_foreach_kernels_supported_devices", lambda: devices),
        mock.patch.object(module, "_foreach_supported_types", types),
    ]


@contextlib.contextmanager
def _set_up(folder: Path) -> Iterator[None]:
    """Modules beside the script are found, nothing is fetched, and PyTorch logs no account of its own of a fault."""
    offline = {name: "1" for name in OFFLINE if name not in os.environ}
    logger = logging.getLogger("torch._subclasses.fake_tensor")
    with (
        mock.patch.object(sys, "path", [str(folder), *sys.path]),
        mock.patch.dict(os.environ, offline),
        mock.patch.object(logger, "disabled", True),
    ):
        yield
