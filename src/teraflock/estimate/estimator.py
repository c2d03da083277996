"""Computes the memory and time of one workload from its trace, each part on demand."""

from typing import TYPE_CHECKING

import msgspec

from teraflock.base.errors import BadInput
from teraflock.catalog.model import Card
from teraflock.estimate import parallel
from teraflock.estimate.batch import LIMIT_SHARE, BatchFinder
from teraflock.estimate.bounds import CardModel
from teraflock.estimate.cards import doubt, known_peaks
from teraflock.estimate.memory import Memory, Scene, plain_peak, replay
from teraflock.estimate.outline import Outline
from teraflock.estimate.speed import measured
from teraflock.estimate.step import SHARED, Host, Seconds, StepWork
from teraflock.estimate.workspace import CUBLAS_WORKSPACE_BYTES
from teraflock.workload import zoo
from teraflock.workload.accumulation import accumulated
from teraflock.workload.expression import folded_all
from teraflock.workload.model import Workload, checked, is_trace
from teraflock.workload.trace import DTYPE_BYTES, Trace, read_trace_file

if TYPE_CHECKING:
    from teraflock.estimate.compiled import CompiledModel


class Estimator:
    """One workload with its trace. Computes each result only when a caller needs it."""

    def __init__(self, workload: Workload, *, tensor_parallel: int = 1) -> None:
        """`tensor_parallel` is the number of GPUs that run one batch together. Results are for each of them."""
        self.tensor_parallel = tensor_parallel
        self.is_trace = is_trace(workload.model)
        if self.is_trace:
            self.trace = read_trace_file(workload.model)
            self.workload = _of_trace(workload, self.trace)
        else:
            self.workload = zoo.with_sizes(checked(workload))
            if workload.precision == "fp8":  # torchao needs `torch.compile` to be faster than bf16
                self.workload = msgspec.structs.replace(self.workload, compile=True)
            self.trace = zoo.trace_for(self.workload)
        if tensor_parallel > 1:
            from teraflock.estimate.tensor_parallel import divided  # imported here: few estimates need it

            symbols = zoo.symbols_for(self.workload, self.trace)
            self.trace = divided(self.trace, symbols, self.workload, tensor_parallel)
        # Only the batch is ever evaluated at several sizes, so all other symbols are fixed here.
        fixed = {
            name: size for name, size in zoo.symbols_for(self.workload, self.trace).items() if name != "batch"
        }
        self.trace = msgspec.structs.replace(
            self.trace, expressions=folded_all(self.trace.expressions, fixed)
        )
        if self.workload.load_in == "8bit" and self.trace.has_backward:
            from teraflock.workload.outliers import with_kept_inputs  # imported here: few estimates need it

            self.trace = with_kept_inputs(
                self.trace,
                tokens=self.workload.batch * (self.workload.seq or 1),
                checkpointing=self.workload.gradient_checkpointing,
            )
        if self.workload.compile:
            from teraflock.workload.compiled import compiled  # imported here: few estimates need it

            if not self.is_trace and zoo.is_encoder(self.workload.model):
                from teraflock.workload.masked import with_scores

                self.trace = with_scores(self.trace)
            self.trace = compiled(self.trace)
        if self.workload.accumulate > 1:
            self.trace = accumulated(self.trace)
        self._outline = Outline(self.trace)
        self.known = measured()
        self.optimizer = self.workload.optimizer if self.workload.task == "train" else "none"
        self.cublas_bytes = CUBLAS_WORKSPACE_BYTES["Hopper"]
        self._scenes: dict[tuple[int, bool], Scene] = {}

    @property
    def is_generator(self) -> bool:
        return not self.is_trace and zoo.entry(self.workload.model).kind == "generator"

    def scene(self, batch: int | None = None) -> Scene:
        return self._scene(self.workload.batch if batch is None else batch, lean=False)

    def lean_scene(self, batch: int) -> Scene:
        """The scene when memory is short: convolutions use no workspace."""
        return self._scene(batch, lean=True)

    def _scene(self, batch: int, *, lean: bool) -> Scene:
        """Cached: every search uses the same few batches, and memory and time use the same one."""
        if (batch, lean) not in self._scenes:
            workload = msgspec.structs.replace(self.workload, batch=batch)
            symbols = zoo.symbols_for(workload, self.trace)
            # Compiled convolutions use the channels-last layout, so cuDNN copies nothing to another one.
            shares = {} if self.workload.compile else self.known.workspace
            made = Scene(self.trace, symbols, shares, lean=lean, outline=self._outline)
            self._scenes[batch, lean] = made
        return self._scenes[batch, lean]

    def memory(self, *, expandable_segments: bool = False, timeline: bool = False) -> Memory:
        return replay(
            self.scene(),
            self.optimizer,
            cublas_bytes=self.cublas_bytes,
            expandable_segments=expandable_segments,
            held=self.held(),
            timeline=timeline,
        )

    def held(self) -> dict[str, int]:
        """Memory that is not in the trace, by kind."""
        return {"k": self.kv_cache_bytes()}

    def kv_cache_bytes(self) -> int:
        if not self.workload.kv_cache or self.is_trace:
            return 0
        size = 2 if self.workload.precision != "fp32" else 4
        known = zoo.entry(self.workload.model)
        elements = known.kv_elements_per_token * (self.workload.seq or 0) + known.kv_elements_fixed
        return elements * self.workload.batch * size // self.tensor_parallel

    def gradient_bytes(self) -> int:
        if not self.trace.has_backward:
            return 0
        scene = self.scene()
        total = 0
        for shape, dtype in scene.parameter_sizes():
            size = DTYPE_BYTES[dtype]
            for each in shape:
                size *= each
            total += size
        return total


def step_of(
    estimator: Estimator,
    scene: Scene,
    *,
    host: Host = SHARED,
    context: bool = False,
    card_model: CardModel | None = None,
) -> StepWork:
    passes = estimator.workload.accumulate - 1
    alone = _step(estimator, scene, "none", host, context, card_model) if passes else None
    return _step(
        estimator, scene, estimator.optimizer, host, context, card_model, (alone, passes) if alone else None
    )


def _step(
    estimator: Estimator,
    scene: Scene,
    optimizer: str,
    host: Host,
    context: bool,
    card_model: CardModel | None,
    before: tuple[StepWork, int] | None = None,
) -> StepWork:
    return StepWork(
        scene,
        optimizer,
        estimator.known,
        estimator.workload.precision,
        host=host,
        model="" if estimator.is_trace else estimator.workload.model,
        generator=estimator.is_generator,
        context=context,
        card_model=card_model,
        before=before,
        compiled=_compiled_model(estimator, scene) if estimator.workload.compile else None,
    )


def _compiled_model(estimator: Estimator, scene: Scene) -> "CompiledModel":
    from teraflock.estimate.compiled import FITTED, float8  # imported here: few estimates need it

    if estimator.workload.precision != "fp8":
        return FITTED
    # The output layer is as long as the vocabulary, the longest side of any parameter.
    return float8(head=max(max(shape, default=0) for shape, _ in scene.parameter_sizes()))


def finder_for(estimator: Estimator, extra_bytes: int, temporary_share: float = 1.0) -> BatchFinder | None:
    """None for a trace with a fixed batch."""
    if "batch" not in estimator.trace.symbols:
        return None
    return BatchFinder(
        estimator.lean_scene,
        estimator.optimizer,
        estimator.cublas_bytes,
        extra_bytes=extra_bytes + sum(estimator.held().values()),
        temporary_share=temporary_share,
        share=LIMIT_SHARE
        if any(each.name.startswith("convolution") for each in estimator.trace.operations)
        else 1.0,
    )


def need_bytes(estimator: Estimator, finder: BatchFinder | None) -> int:
    if finder is not None:
        return finder.need_bytes(estimator.workload.batch)
    scene = estimator.lean_scene(estimator.workload.batch)
    return plain_peak(scene, estimator.optimizer, cublas_bytes=estimator.cublas_bytes)


def seconds_on(
    estimator: Estimator, step: StepWork, card: Card, buckets: float = 0.0, gpus: int = 1
) -> Seconds | None:
    """The time of one step on `gpus` GPUs (with tensor parallelism: groups of GPUs), each with its own batch. None if
    the card's speed is unknown."""
    there = known_peaks(card)
    if there is None:
        return None
    alone = step.seconds(there)
    low, high = step.interval(there, doubt(card))
    if estimator.tensor_parallel > 1:
        from teraflock.estimate.tensor_parallel import reduce_seconds

        reduces = reduce_seconds(estimator.workload, card, estimator.tensor_parallel)
        alone, low, high = alone + reduces, low + reduces, high + reduces
    middle = parallel.step_seconds(alone, buckets, card, gpus)
    factor = middle / alone
    return Seconds(low * factor, middle, high * factor)


def _of_trace(workload: Workload, trace: Trace) -> Workload:
    """The trace determines the workload. Only the batch can be chosen, if it is a symbol."""
    if workload.batch < 0:
        raise BadInput(f"The batch must be at least 1, not {workload.batch}")
    batch = workload.batch or trace.symbols.get("batch") or trace.samples
    if "batch" not in trace.symbols and workload.batch and trace.samples and workload.batch != trace.samples:
        raise BadInput(
            f"This trace was recorded with a batch of {trace.samples}, so it cannot be used for {workload.batch}",
            hint="Record it again with that batch, or trace an `--entry` function with a `batch` parameter",
        )
    return msgspec.structs.replace(
        workload,
        batch=batch,
        precision=trace.precision,
        task="train" if trace.has_backward else "infer",
        optimizer=workload.optimizer if not trace.has_optimizer else "",
    )
