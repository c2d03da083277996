"""One recording: a watched run, the step that was found in it, and the resulting trace."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from teraflock.base.errors import BadInput
from teraflock.workload.trace import EVENT_KINDS, EventKind, Mark, SeenInTrace, Trace
from teraflock.workload.tracing import steps
from teraflock.workload.tracing.cuda import CudaChoices
from teraflock.workload.tracing.failure import explained
from teraflock.workload.tracing.pretending import pretending
from teraflock.workload.tracing.reading import TraceReading
from teraflock.workload.tracing.recorder import DTYPES, Recorder
from teraflock.workload.tracing.side import Sides
from teraflock.workload.tracing.steps import Window
from teraflock.workload.tracing.time_limit import OutOfTime
from teraflock.workload.tracing.unknown import Notes
from teraflock.workload.tracing.watching import TraceWatch
from teraflock.workload.tracing.wrapping import wrapping_patches

PASSES_MAX: Final = 64
"""After this many forward passes, a script that never trained is stopped."""


EVALUATIONS_MAX: Final = 160
NO_GPU: Final = "Put the model, or the tensors that it computes with, on `cuda`"
"""The same for passes of a model in `eval()`."""


class _Enough(BaseException):
    """Ends the script when a step is known. Not an `Exception`, so that `except Exception` does not catch it."""


class NeedsGpu(BaseException):
    """The script trains or infers but never names a GPU. It is run again as if it did."""


class Session:
    def __init__(
        self, name: str, folder: Path, *, symbolic: bool = False, assume: bool = False, times: int = 1
    ) -> None:
        self.name = name
        self.folder = folder.resolve()
        self.symbols: dict[str, int] = {}
        self._names: dict[str, str] = {}
        self._env: Any = None
        if symbolic:
            from torch.fx.experimental.symbolic_shapes import ShapeEnv

            # Operations that depend on values are refused at their line, as without symbols.
            self._env = ShapeEnv(allow_scalar_outputs=False, allow_dynamic_output_shape_ops=False)
        self.notes = Notes(self.folder)
        self.sides = Sides(FakeTensorMode(shape_env=self._env, allow_non_fake_inputs=True), assume=assume)
        self.sides.on_other_gpu = lambda: self.notes.add(
            "What the script puts on several GPUs counts as on one"
        )
        self.recorder = Recorder(self.sides)
        self.recorder.on_assumed = lambda: self.notes.add(
            "torchvision selects boxes by values that only a GPU would compute: as many count as early in training"
        )
        self.recorder.known.on_assumed = lambda: self.notes.add(
            "each of the choices of `topk` counts as taken equally often: values that only a GPU would compute decide",
            key="choices",
            line=True,
        )
        reading = TraceReading(self.sides, self.notes)
        reading.believe = self.recorder.believe
        reading.guess, reading.waited = self.recorder.guess, self.recorder.waited
        reading.known = self.recorder.known
        self.choices = CudaChoices(self.sides, reading)
        self.choices.autocast.on_copy = lambda copy: self.recorder.tag([copy], "c")
        self.watch = TraceWatch(self.recorder, self.sides, self.choices, self.notes, self._asked, times)
        self.window: Window | None = None
        self._bare: list[Any] = []
        if assume:
            self.notes.add("The script names no GPU: its model and data are traced as if they were on one")

    def symbol(self, name: str, hint: int) -> Any:
        from torch._dynamo.source import ConstantSource
        from torch.fx.experimental.symbolic_shapes import DimDynamic

        made = self._env.create_symbol(
            hint, source=ConstantSource(name), dynamic_dim=DimDynamic.DYNAMIC, constraint_dim=None
        )
        self.symbols[name] = hint
        self._names[str(made)] = name
        return self._env.create_symintnode(made, hint=hint)

    def record(self, run: Callable[[], Any]) -> Trace:
        self.recorder.phase = "a"
        with ExitStack() as stack:
            stack.enter_context(pretending(self.choices))
            for patch in wrapping_patches(self.notes):
                stack.enter_context(patch)
            stack.enter_context(self.watch.watching())
            stack.enter_context(self.recorder)
            stack.enter_context(self.choices)
            try:
                run()
            except _Enough:
                pass
            except SystemExit as error:
                if error.code not in (None, 0):
                    raise explained(error, name=self.name, folder=self.folder) from None
            except KeyError:
                raise
            except OutOfTime:
                if not self._ends_inference():
                    raise
            except Exception as error:
                raise explained(error, name=self.name, folder=self.folder) from None
            finally:
                self.recorder.paused = True
            return self._trace()

    # Finding the step.

    @property
    def _run(self) -> Sequence[steps.Happening]:
        return steps.counted(self.watch.run)

    def _asked(self, kind: str) -> None:
        run, watch = self._run, self.watch
        if kind == steps.STEP:
            if not self.sides.used_gpu and not self.sides.assume:
                raise NeedsGpu
            self.window = steps.training_window(run, len(watch.optimizers))
        elif not watch.optimizers and any(each.kind == steps.BACKWARD for each in run):
            if not self.sides.used_gpu and not self.sides.assume:
                raise NeedsGpu
            self.window = steps.hand_updated_window(run)
        elif not watch.optimizers and len(run) > self._passes_max(kind) and not torch.is_grad_enabled():
            self._ends_inference()
            raise _Enough
        if self.window is not None:
            self._check_parameters()  # now: at its end a framework may move its model away
            if self.recorder.leaves.is_on:
                self._bare = self.recorder.leaves.parameters()  # the script's own variables end with it
            raise _Enough

    @staticmethod
    def _passes_max(kind: str) -> int:
        """Some scripts evaluate a model before they train it: more passes are needed to tell."""
        return PASSES_MAX if kind == steps.FORWARD else EVALUATIONS_MAX

    def _ends_inference(self) -> bool:
        trained = any(each.kind in (steps.BACKWARD, steps.STEP) for each in self._run)
        if trained or self.watch.optimizers:
            return False
        self.window = steps.inference_window(self._run, len(self.recorder.events))
        return self.window is not None

    def _found(self) -> Window:
        if self.window is not None:
            return self.window
        taken = sum(each.kind == steps.STEP for each in self._run)
        if taken:
            raise BadInput(
                f"The script ran {taken} optimizer step{'s' * (taken > 1)} and ended before a step was repeated",
                hint="Let it run at least two steps: use a larger dataset, more epochs or a smaller batch",
            )
        if any(each.kind == steps.BACKWARD for each in self._run):
            raise BadInput(
                "The script ran a backward pass but no optimizer step", hint="Let it run two steps or more"
            )
        if not self.sides.used_gpu and not self.sides.assume and self._run:
            raise NeedsGpu
        if self._ends_inference() and self.window is not None:
            return self.window
        return Window(0, 0, 0, len(self.recorder.events))

    def out_of_time(self, error: BaseException, seconds: float) -> BadInput:
        counts = Counter(each.kind for each in self._run)
        ended = explained(error, name=self.name, folder=self.folder, reason="")
        return BadInput(
            f"{ended.sentence}: no complete step within {seconds:g} s ({counts[steps.FORWARD]} forward,"
            f" {counts[steps.BACKWARD]} backward passes, {counts[steps.STEP]} optimizer steps)",
            hint="Use a longer `--time-limit`, or let the script do less before its second step",
        )

    # What was found, as a trace.

    def _trace(self) -> Trace:
        window, recorder = self._found(), self.recorder
        if not recorder.operations:
            raise BadInput("The script ran no PyTorch operation on a GPU", hint=NO_GPU)
        if torch.backends.cudnn.benchmark:
            self.notes.add(
                "`cudnn.benchmark` tries algorithms with large workspaces, as far as memory is free"
            )
        trains = any(each.kind == steps.BACKWARD for each in self._run)
        parameters = self._parameters() if trains else []
        symbolic = bool(self.symbols)
        return Trace(
            name=self.name,
            torch=str(torch.__version__),
            symbols=self.symbols,
            expressions=[self._renamed(each) for each in recorder.expressions],
            operations=recorder.operations,
            parameters=[recorder.parameter(each) for each in parameters],
            events=self._events(window),
            kinds="".join(recorder.kinds),
            has_optimizer=True,
            has_backward=trains,
            precision=self._precision(),
            views=self._views(window.end) - self._views(window.start),
            samples=0 if symbolic or not self._run else steps.samples_of(self._run, window),
            seen=self._seen(window, trains),
            benchmark=torch.backends.cudnn.benchmark,
        )

    def _events(self, window: Window) -> list[int]:
        """Up to the end of the step. Of an evaluation within the step, only what it keeps in memory."""
        events = self.recorder.events
        mark = EventKind.MARK
        dropped = [part for part in self.watch.evaluations if part[1] > window.start and part[0] < window.end]
        step = [
            event
            for place, event in enumerate(events[window.start : window.end], window.start)
            if event % EVENT_KINDS != EventKind.OPERATE or not any(a <= place < b for a, b in dropped)
        ] if dropped and self._trained_at_all() else events[window.start : window.end]  # fmt: skip
        start, end = Mark.STEP * EVENT_KINDS + mark, Mark.END * EVENT_KINDS + mark
        return [*events[: window.start], start, *step, end]

    def _trained_at_all(self) -> bool:
        return any(each.kind == steps.BACKWARD for each in self._run)

    def _views(self, event: int) -> int:
        at = bisect_right(self.watch.views, (event, 1 << 62))
        return self.watch.views[at - 1][1] if at else 0

    def _parameters(self) -> list[Any]:
        found: dict[int, Any] = {}
        for optimizer in self.watch.optimizers.values():
            for group in optimizer.param_groups:
                found |= {id(each): each for each in group["params"]}
        return list(found.values()) or [each for each in self._of_modules() if each.requires_grad]

    def _of_modules(self) -> list[Any]:
        return self._of(self.watch.modules) or self._bare

    @staticmethod
    def _of(modules: list[Any]) -> list[Any]:
        found = {id(each): each for module in modules for each in module.parameters()}
        return [
            each for each in found.values() if each.device.type != "meta"
        ]  # of a form for `functional_call`

    def _renamed(self, each: Any) -> Any:
        if isinstance(each, str):
            return self._names[each]
        return [each[0], *[self._renamed(part) for part in each[1:]]] if isinstance(each, list) else each

    def _precision(self) -> str:
        if self.watch.autocast is not None:
            return "amp-fp16" if self.watch.autocast == torch.float16 else "amp-bf16"
        if any(getattr(each, "teraflock_dtype", None) == torch.bfloat16 for each in self.watch.modules):
            return "amp-bf16"  # a sharded model that computes with copies of its parameters
        counts: Counter[str] = Counter()
        for each in self._of_modules() or self._parameters():
            counts[DTYPES.get(each.dtype, "f")] += each.numel()
        main = max(counts, key=lambda letter: counts[letter]) if counts else "f"
        if main in "bh":
            return "bf16" if main == "b" else "fp16"
        return "tf32" if torch.backends.cuda.matmul.allow_tf32 else "fp32"

    def _seen(self, window: Window, trains: bool) -> SeenInTrace:
        watch = self.watch
        whole = {id(each): each for each in (*self._of_modules(), *self._parameters())}
        by_type: Counter[str] = Counter()
        for each in whole.values():
            by_type[str(each.dtype).removeprefix("torch.")] += int(each.numel())
        return SeenInTrace(
            parameters=dict(by_type),
            trained=sum(int(each.numel()) for each in self._parameters() if each.requires_grad)
            if trains
            else 0,
            input_shape=list(watch.input_shape),
            backward_passes=steps.backward_passes_of(self._run, window),
            forward_passes=steps.forward_passes_of(self._run, window),
            optimizers=[type(each).__name__ for each in watch.optimizers.values()] if trains else [],
            notes=self.notes.sentences,
        )

    def _check_parameters(self) -> None:
        if not self.watch.optimizers:
            begins = "backward" if self.recorder.leaves.is_on else "forward"
            self.notes.add(f"There is no optimizer object: a step ends where the next {begins} pass begins")
            return
        learning = [each for each in self.watch.modules if id(each) in self.watch.learning]
        model = {id(each): each for each in self._of(learning) if each.requires_grad}
        missing = sum(int(each.numel()) for key, each in model.items() if key not in self.watch.trained)
        if missing:
            self.notes.add(f"{missing:,} trainable parameters of the model are not in any optimizer")
        there = [each for each in self._parameters() if each.requires_grad]
        idle = sum(int(each.numel()) for each in there if not self.sides.is_gpu(each))
        if idle:
            self.notes.add(f"{idle:,} parameters of the optimizer are in host memory, not on the GPU")
