"""The memory of a step: replays a trace through the allocator, with the chosen optimizer.

It replays two steps, because the first step allocates the optimizer's state and the second has its full weight. The
timeline has the live bytes after each operation of the second step.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from math import prod
from typing import Final

import msgspec

from teraflock.estimate.allocator import Block, CachingAllocator, OutOfMemory
from teraflock.estimate.operation import Work, work_of
from teraflock.estimate.outline import (
    ALLOCATE,
    FIRST_OPERATION,
    FREE,
    OPERATE,
    OPTIMIZER,
    TO_BACKWARD,
    Moves,
    Outline,
)
from teraflock.estimate.workspace import special_workspace_bytes, trial_bytes, workspace_bytes
from teraflock.workload.expression import evaluate_all
from teraflock.workload.trace import DTYPE_BYTES, EVENT_KINDS, KINDS, Trace

TIMELINE_POINTS_MAX: Final = 400


class Memory(msgspec.Struct, frozen=True, kw_only=True):
    live_peak_bytes: int
    reserved_peak_bytes: int
    breakdown: dict[str, int]
    """Live bytes at the peak, by kind."""
    timeline: list[int]
    """Live bytes over the second step, if it was requested."""


class Scene:
    """A trace with its sizes evaluated for one batch, sequence length and image size.

    In a `lean` scene convolutions use no workspace, as when memory is short.
    """

    def __init__(
        self,
        trace: Trace,
        symbols: Mapping[str, int],
        shares: Mapping[str, float],
        *,
        lean: bool = False,
        outline: Outline | None = None,
    ) -> None:
        self.trace = trace
        self.sizes = evaluate_all(trace.expressions, symbols)
        self._outline = outline or Outline(trace)
        self.matmuls = self._outline.matmuls
        self.setup, self.step = self._outline.setup, self._outline.step
        self._shares = shares
        self._lean = lean

    @cached_property
    def moves(self) -> tuple[Moves, Moves]:
        """Setup and step, for a fast replay, with the operations that have a workspace."""
        if self._lean:
            return self._outline.lean_moves
        used = {at for at, size in enumerate(self.workspaces) if size}
        return self._outline.lean_moves if used <= self._outline.specials else self._outline.moves(used)

    @property
    def workspace_count(self) -> int:
        """How many workspaces matrix products have; known after `moves`."""
        return len(self._outline.sides)

    def all_moves(self) -> tuple[Moves, Moves]:
        """Setup and step with all operations."""
        return self._outline.moves(range(len(self.trace.operations)))

    # Computed on demand: most scenes of a search for the largest batch need only the sizes.

    @cached_property
    def works(self) -> list[Work]:
        return [work_of(each, self.sizes) for each in self.trace.operations]

    @cached_property
    def workspaces(self) -> list[int]:
        if self._lean:
            found = [0] * len(self.trace.operations)
            for at in self._outline.specials:
                found[at] = special_workspace_bytes(self.trace.operations[at], self.sizes)
            return found
        found = [
            workspace_bytes(operation, work, self.sizes, self._shares)
            for operation, work in zip(self.trace.operations, self.works, strict=True)
        ]
        if self.trace.benchmark:
            tried = (trial_bytes(operation, self.sizes) for operation in self.trace.operations)
            return list(map(max, found, tried))
        return found

    def parameter_sizes(self) -> list[tuple[list[int], str]]:
        """Shape and type of every trainable parameter."""
        return self._outline.parameters or [
            ([self.sizes[i] for i in p.shape], p.dtype) for p in self.trace.parameters if p.trainable
        ]

    def step_works(self) -> Iterator[Work]:
        """The operations of the last step, in order, with repetitions."""
        for event in self.step:
            if event % EVENT_KINDS == OPERATE:
                yield self.works[event // EVENT_KINDS]


def replay(
    scene: Scene,
    optimizer: str,
    *,
    cublas_bytes: int,
    limit_bytes: int | None = None,
    expandable_segments: bool = False,
    held: Mapping[str, int] | None = None,
    timeline: bool = False,
) -> Memory:
    """Raise `OutOfMemory` if the replay exceeds the limit.

    `held` is memory that is not in the trace, by kind. It stays allocated from the first step on.
    """
    player = _Player(
        scene, cublas_bytes, CachingAllocator(limit_bytes, expandable_segments=expandable_segments)
    )
    setup, step = scene.all_moves() if timeline else scene.moves
    try:
        player.play(setup)
        player.setup_count = len(player.blocks)
        player.state += [player.allocate(size, kind) for kind, size in (held or {}).items() if size]
        if scene.trace.has_optimizer:
            player.record = timeline
            player.play(step)
            return player.memory()
        for turn in (1, 2):
            player.record = timeline and turn == 2
            player.new_step()
            player.play(step)
            if scene.trace.has_backward:
                player.optimize(optimizer, scene.parameter_sizes(), first=turn == 1)
        return player.memory()
    finally:
        player.allocator.close()


def plain_peak(scene: Scene, optimizer: str, *, cublas_bytes: int, temporary_share: float = 1.0) -> int:
    """The live peak as a plain sum, with the optimizer's state present. Takes a third of a replay, exact to about 1 %.

    `temporary_share` is the part of the optimizer's temporaries on this GPU; other GPUs hold the rest.
    """
    sizes, workspaces = scene.sizes, scene.workspaces
    shapes = scene.parameter_sizes()
    parameters = [prod(shape) * DTYPE_BYTES[dtype] for shape, dtype in shapes]
    trains = scene.trace.has_backward and not scene.trace.has_optimizer
    setup, step = scene.moves
    born: list[int] = []
    live = peak = 0
    for moves in (setup, step):
        if moves is step:
            live += cublas_bytes * scene.workspace_count
            if trains:
                states = zip(shapes, parameters, strict=True)
                live += sum(sum(optimizer_state(optimizer, shape, size)) for (shape, _), size in states)
        for move in moves:
            if move < 0:
                live -= born[-move - 1]
            elif move < FIRST_OPERATION:
                size = sizes[move]
                live += size
                born.append(size)
                if live > peak:
                    peak = live
            elif move < TO_BACKWARD and live + workspaces[move - FIRST_OPERATION] > peak:
                peak = live + workspaces[move - FIRST_OPERATION]
    temporary = round(temporary_share * optimizer_temporary(optimizer, parameters))
    return max(peak, live + temporary) if trains else peak


def peaks_by_phase(scene: Scene) -> tuple[int, int]:
    """Live peaks of a trace that includes the optimizer's step: before that step, and during it."""
    live, born = 0, []
    peaks = [0, 0]
    for part in (scene.setup, scene.step):
        within = 0
        for event in part:
            kind, argument = event % EVENT_KINDS, event // EVENT_KINDS
            if kind == ALLOCATE:
                live += scene.sizes[argument]
                born.append(scene.sizes[argument])
            elif kind == FREE:
                live -= born[-argument]
            elif kind != OPERATE:
                within = int(argument == OPTIMIZER)
            peaks[within] = max(peaks[within], live)
    return peaks[0], peaks[1]


EIGHT_BITS_MIN: Final = 4096
EIGHT_BITS_BLOCK: Final = 256
"""Of bitsandbytes: smaller parameters keep their state in 32 bits; each block of numbers has one scale."""


def optimizer_state(optimizer: str, shape: Sequence[int], size: int) -> list[int]:
    """Bytes of each state tensor that the optimizer keeps for a parameter of `size` bytes. Paged state is not in
    PyTorch's memory: the driver moves it to the host when the GPU is full."""
    if optimizer == "sgd":
        return [size]
    if optimizer in ("adam", "adamw"):
        return [size, size]
    if optimizer == "adamw-8bit":
        count = prod(shape)
        if count < EIGHT_BITS_MIN:
            return [4 * count, 4 * count]
        scales = 4 * -(-count // EIGHT_BITS_BLOCK)
        return [count, count, scales, scales]
    if optimizer == "adafactor":
        if len(shape) < 2:
            return [size]
        width = max(1, size // max(1, prod(shape)))
        return [size // max(1, shape[-1]), width * prod(shape[:-2]) * shape[-1]]
    return []


def optimizer_temporary(optimizer: str, sizes: Sequence[int]) -> int:
    """The peak bytes of temporaries in an optimizer's step, given the bytes of every parameter."""
    if optimizer in ("adam", "adamw"):
        return sum(sizes)
    return max(sizes, default=0) if optimizer == "adafactor" else 0


class _Player:
    def __init__(self, scene: Scene, cublas_bytes: int, allocator: CachingAllocator) -> None:
        self.scene = scene
        self.allocator = allocator
        self.cublas_bytes = cublas_bytes
        self.handles = {"forward": False, "backward": False}
        self.blocks: list[Block | None] = []
        self.setup_count = 0
        self.live_by_kind = dict.fromkeys(KINDS, 0)
        self.at_peak: dict[str, int] = {}
        self.recorded_peak_bytes = 0
        self.rising = False
        self.state: list[Block] = []
        self.record = False
        self.timeline: list[int] = []
        self.backward = False

    def play(self, moves: Moves) -> None:
        sizes, kinds = self.scene.sizes, self.scene.trace.kinds
        blocks, by_kind, allocator = self.blocks, self.live_by_kind, self.allocator
        allocate, release = allocator.allocate, allocator.release
        # `allocate` and `_release` are inlined: calling them for ten thousand blocks takes a fifth of the time.
        for move in moves:
            if move < 0:
                at = -move - 1
                freed = blocks[at]
                if freed is not None:
                    if self.rising:
                        self._record_peak()
                    by_kind[kinds[at]] -= freed.size
                    release(freed)
                    blocks[at] = None
            elif move < FIRST_OPERATION:
                block = allocate(sizes[move])
                by_kind[kinds[len(blocks)]] += block.size
                if allocator.live_bytes > self.recorded_peak_bytes:
                    self.rising = True
                blocks.append(block)
            elif move >= TO_BACKWARD:
                self.backward = move == TO_BACKWARD
            else:
                self._operate(move - FIRST_OPERATION)

    def _operate(self, operation: int) -> None:
        if self.scene.matmuls[operation]:
            self._handle()
        if self.scene.workspaces[operation]:
            self._workspace(self.scene.workspaces[operation])
        if self.record:
            self.timeline.append(self.allocator.live_bytes)

    def allocate(self, size: int, letter: str) -> Block:
        allocator = self.allocator
        block = allocator.allocate(size)
        self.live_by_kind[letter] += block.size
        if allocator.live_bytes > self.recorded_peak_bytes:
            self.rising = True
        return block

    def new_step(self) -> None:
        """Free what the previous step left allocated: gradients, the loss, temporaries."""
        count = self.setup_count
        for index in range(count, len(self.blocks)):
            block = self.blocks[index]
            if block is not None:
                self._release(block, self.scene.trace.kinds[index])
        del self.blocks[count:]
        self.backward = False

    def optimize(self, optimizer: str, parameters: Sequence[tuple[list[int], str]], *, first: bool) -> None:
        sizes = [prod(shape) * DTYPE_BYTES[dtype] for shape, dtype in parameters]
        if first:
            for (shape, _), size in zip(parameters, sizes, strict=True):
                self.state += [self.allocate(each, "o") for each in optimizer_state(optimizer, shape, size)]
        if optimizer in ("adam", "adamw"):
            # One list operation computes the square root of the second moment for all parameters.
            temporaries = [self.allocate(size, "t") for size in sizes]
            for block in temporaries:
                self._release(block, "t")
        elif optimizer == "adafactor":
            for size in sizes:  # one parameter at a time, with one temporary for its update
                self._release(self.allocate(size, "t"), "t")
        if self.record:
            self.timeline.append(self.allocator.live_bytes)

    def memory(self) -> Memory:
        if self.rising:
            self._record_peak()
        stride = -(-len(self.timeline) // TIMELINE_POINTS_MAX) or 1
        return Memory(
            live_peak_bytes=self.allocator.live_peak_bytes,
            reserved_peak_bytes=self.allocator.reserved_peak_bytes,
            breakdown={KINDS[letter]: size for letter, size in self.at_peak.items() if size},
            timeline=[max(self.timeline[i : i + stride]) for i in range(0, len(self.timeline), stride)],
        )

    def _workspace(self, size: int) -> None:
        try:
            block = self.allocate(size, "w")
        except OutOfMemory:
            return  # cuDNN then uses a slower algorithm without a workspace
        self._release(block, "w")

    def _handle(self) -> None:
        side = "backward" if self.backward else "forward"
        if not self.handles[side]:
            self.handles[side] = True
            self.state.append(self.allocate(self.cublas_bytes, "w"))

    def _release(self, block: Block, letter: str) -> None:
        if self.rising:
            self._record_peak()
        self.live_by_kind[letter] -= block.size
        self.allocator.release(block)

    def _record_peak(self) -> None:
        """Record the breakdown of a new peak when it ends. While memory rises, every allocation is a new peak."""
        self.rising = False
        self.recorded_peak_bytes = self.allocator.live_bytes
        self.at_peak = dict(self.live_by_kind)
