"""Checks whether a step fits within a limit: the replay of `memory.py` reduced to the allocator.

The search for the largest batch calls this many times and needs no peaks, kinds or timeline, which take half the time
of a replay. Invariant: it returns False exactly when `memory.replay` raises `OutOfMemory`.
"""

from collections.abc import Sequence
from math import prod

from teraflock.estimate.allocator import Block, CachingAllocator, OutOfMemory
from teraflock.estimate.memory import ALLOCATE, BACKWARD, FREE, OPERATE, Scene, optimizer_state
from teraflock.workload.trace import DTYPE_BYTES


def fits_within(
    scene: Scene, optimizer: str, *, cublas_bytes: int, limit_bytes: int, temporary_share: float = 1.0
) -> bool:
    steps = _Steps(scene, cublas_bytes, CachingAllocator(limit_bytes), temporary_share)
    try:
        steps.play(scene.setup)
        kept = len(steps.blocks)
        if scene.trace.has_optimizer:
            steps.play(scene.step)
            return True
        for turn in (1, 2):
            steps.forget(kept)
            steps.play(scene.step)
            if scene.trace.has_backward:
                steps.optimize(optimizer, first=turn == 1)
    except OutOfMemory:
        return False
    finally:
        steps.allocator.close()
    return True


class _Steps:
    def __init__(
        self, scene: Scene, cublas_bytes: int, allocator: CachingAllocator, temporary_share: float
    ) -> None:
        self.scene = scene
        self.temporary_share = temporary_share
        self.cublas_bytes = cublas_bytes
        self.allocator = allocator
        self.blocks: list[Block | None] = []
        self.handles: set[bool] = set()
        self.backward = False

    def play(self, events: Sequence[int]) -> None:
        sizes, workspaces, matmuls = self.scene.sizes, self.scene.workspaces, self.scene.matmuls
        allocate, release = self.allocator.allocate, self.allocator.release
        blocks = self.blocks
        for event in events:
            kind, argument = event & 3, event >> 2
            if kind == ALLOCATE:
                blocks.append(allocate(sizes[argument]))
            elif kind == FREE:
                at = len(blocks) - argument
                block = blocks[at]
                if block is not None:
                    release(block)
                    blocks[at] = None
            elif kind == OPERATE:
                if matmuls[argument]:
                    self._handle()
                if workspaces[argument]:
                    self._workspace(workspaces[argument])
            elif argument == BACKWARD:
                self.backward = True

    def forget(self, kept: int) -> None:
        """Free what the previous step left allocated."""
        for block in self.blocks[kept:]:
            if block is not None:
                self.allocator.release(block)
        del self.blocks[kept:]
        self.backward = False

    def optimize(self, optimizer: str, *, first: bool) -> None:
        allocate = self.allocator.allocate
        parameters = [
            (shape, prod(shape) * DTYPE_BYTES[dtype]) for shape, dtype in self.scene.parameter_sizes()
        ]
        if first:
            for shape, size in parameters:
                for each in optimizer_state(optimizer, shape, size):
                    allocate(each)
        if optimizer in ("adam", "adamw"):  # for all parameters at once
            for block in [allocate(round(self.temporary_share * size)) for _, size in parameters]:
                self.allocator.release(block)
        elif optimizer == "adafactor":  # one by one
            for _, size in parameters:
                self.allocator.release(allocate(size))

    def _handle(self) -> None:
        if self.backward not in self.handles:
            self.handles.add(self.backward)
            self.allocator.allocate(self.cublas_bytes)

    def _workspace(self, size: int) -> None:
        try:
            block = self.allocator.allocate(size)
        except OutOfMemory:
            return  # cuDNN then uses a slower algorithm without a workspace
        self.allocator.release(block)
