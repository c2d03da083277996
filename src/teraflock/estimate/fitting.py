"""Checks whether a step fits within a limit: the replay of `memory.py` reduced to the allocator.

The search for the largest batch needs no peaks, kinds or timeline, which take half the time of a replay. Blocks up to
1 MiB are almost half of all blocks and use little memory. They are only counted, as if PyTorch filled their segments
without gaps. Invariant: the result differs from `memory.replay` only for limits within a few segments of its own.
"""

from math import prod

from teraflock.estimate.allocator import (
    SMALL_BYTES_MAX,
    SMALL_SEGMENT_BYTES,
    Block,
    CachingAllocator,
    OutOfMemory,
)
from teraflock.estimate.memory import Scene, optimizer_state
from teraflock.estimate.outline import FIRST_OPERATION, TO_BACKWARD, Moves
from teraflock.workload.trace import DTYPE_BYTES


def fits_within(
    scene: Scene, optimizer: str, *, cublas_bytes: int, limit_bytes: int, temporary_share: float = 1.0
) -> bool:
    steps = _Steps(scene, cublas_bytes, CachingAllocator(limit_bytes), temporary_share)
    try:
        steps.run(optimizer)
    except OutOfMemory:
        return False
    return True


def sufficient_bytes(
    scene: Scene, optimizer: str, *, cublas_bytes: int, least_bytes: int, temporary_share: float = 1.0
) -> int:
    """A limit that the steps fit within: `least_bytes`, raised wherever freeing the whole cache is not enough.

    One replay finds it. Usually it is within 1 % of the smallest such limit, but it can be far above it.
    """
    allocator = CachingAllocator(least_bytes, grows=True)
    _Steps(scene, cublas_bytes, allocator, temporary_share).run(optimizer)
    return allocator.limit_bytes or 0


class _Steps:
    def __init__(
        self, scene: Scene, cublas_bytes: int, allocator: CachingAllocator, temporary_share: float
    ) -> None:
        self.scene = scene
        self.temporary_share = temporary_share
        self.cublas_bytes = cublas_bytes
        self.allocator = allocator
        self.blocks: list[Block | int | None] = []
        """A small block is its size."""
        self.small_bytes = 0
        self.small_reserved_bytes = 0
        self.handles: set[bool] = set()
        self.backward = False

    def run(self, optimizer: str) -> None:
        """Run two steps: the first allocates the optimizer's state. Raise `OutOfMemory` if they do not fit."""
        setup, step = self.scene.moves
        try:
            self.play(setup)
            kept = len(self.blocks)
            if self.scene.trace.has_optimizer:
                self.play(step)
                return
            for turn in (1, 2):
                self.forget(kept)
                self.play(step)
                if self.scene.trace.has_backward:
                    self.optimize(optimizer, first=turn == 1)
        finally:
            self.allocator.close()

    def play(self, moves: Moves) -> None:
        sizes, blocks = self.scene.sizes, self.blocks
        allocate, release, append = self.allocator.allocate, self.allocator.release, blocks.append
        for move in moves:
            if move < 0:
                block = blocks[-move - 1]
                if type(block) is int:
                    self.small_bytes -= block
                elif block is not None:
                    release(block)  # type: ignore[arg-type]
                blocks[-move - 1] = None
            elif move < FIRST_OPERATION:
                size = sizes[move]
                append(allocate(size) if size > SMALL_BYTES_MAX else self._small(size))
            elif move >= TO_BACKWARD:
                self.backward = move == TO_BACKWARD
            else:
                self._operate(move - FIRST_OPERATION)

    def forget(self, kept: int) -> None:
        """Free what the previous step left allocated."""
        for block in self.blocks[kept:]:
            self._release(block)
        del self.blocks[kept:]
        self.backward = False

    def optimize(self, optimizer: str, *, first: bool) -> None:
        parameters = [
            (shape, prod(shape) * DTYPE_BYTES[dtype]) for shape, dtype in self.scene.parameter_sizes()
        ]
        if first:
            for shape, size in parameters:
                for each in optimizer_state(optimizer, shape, size):
                    self._allocate(each)
        if optimizer in ("adam", "adamw"):  # for all parameters at once
            for block in [self._allocate(round(self.temporary_share * size)) for _, size in parameters]:
                self._release(block)
        elif optimizer == "adafactor":  # one by one
            for _, size in parameters:
                self._release(self._allocate(size))

    def _allocate(self, size: int) -> Block | int:
        return self.allocator.allocate(size) if size > SMALL_BYTES_MAX else self._small(size)

    def _small(self, size: int) -> int:
        self.small_bytes += size
        if self.small_bytes > self.small_reserved_bytes:
            self.allocator.reserve(SMALL_SEGMENT_BYTES)
            self.small_reserved_bytes += SMALL_SEGMENT_BYTES
        return size

    def _release(self, block: Block | int | None) -> None:
        if isinstance(block, int):
            self.small_bytes -= block
        elif block is not None:
            self.allocator.release(block)

    def _operate(self, operation: int) -> None:
        if self.scene.matmuls[operation] and self.backward not in self.handles:
            self.handles.add(self.backward)
            self._allocate(self.cublas_bytes)
        if workspace := self.scene.workspaces[operation]:
            self._use_workspace(workspace)

    def _use_workspace(self, size: int) -> None:
        allocator = self.allocator
        grows, allocator.grows = allocator.grows, False
        try:
            block = self._allocate(size)
        except OutOfMemory:
            return  # the kernel then uses a slower algorithm without a workspace
        finally:
            allocator.grows = grows
        self._release(block)
