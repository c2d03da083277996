"""Which batch still fits: the allocator replayed under a limit.

Short of memory PyTorch gives its cache back and cuDNN takes ways that need no workspace, so the question is
not what a comfortable run reserves but whether the replay without convolution workspaces finds room. The
margin left below the limit was taken from nothing measured here: it covers what the replay cannot see.
"""

from collections.abc import Callable
from typing import Final

from teraflock.estimate.allocator import OutOfMemory
from teraflock.estimate.memory import Scene, replay

LIMIT_SHARE: Final = 0.985
RESOLUTION: Final = 0.004
"""Of the batch: finer than the two to three per cent the measured answers resolve."""
BATCH_MAX: Final = 1 << 20


class BatchFinder:
    """Answers for one workload; `scene_of` gives the trace at a batch."""

    def __init__(
        self, scene_of: Callable[[int], Scene], optimizer: str, cublas_bytes: int, extra_bytes: int = 0
    ) -> None:
        self._scene_of = scene_of
        self._optimizer = optimizer
        self._cublas_bytes = cublas_bytes
        self._extra_bytes = extra_bytes
        self._needs: dict[int, int] = {}
        self._tightness: float | None = None

    def need_bytes(self, batch: int) -> int:
        """The live peak without convolution workspaces."""
        if batch not in self._needs:
            memory = replay(self._lean(batch), self._optimizer, cublas_bytes=self._cublas_bytes)
            self._needs[batch] = memory.live_peak_bytes + self._extra_bytes
        return self._needs[batch]

    def fits(self, batch: int, limit_bytes: int) -> bool:
        limit = int(limit_bytes * LIMIT_SHARE) - self._extra_bytes
        try:
            replay(self._lean(batch), self._optimizer, cublas_bytes=self._cublas_bytes, limit_bytes=limit)
        except OutOfMemory:
            return False
        return True

    def largest(self, limit_bytes: int) -> int:
        """The largest batch that fits, by replay; 0 where not even one sample does."""
        if not self.fits(1, limit_bytes):
            return 0
        low, high = 1, 0
        probe = self._guess(limit_bytes * LIMIT_SHARE)
        while not high or high - low > max(1, RESOLUTION * low):
            probe = min(max(probe, low + 1), (high or BATCH_MAX) - 1 if high else BATCH_MAX)
            if self.fits(probe, limit_bytes):
                low = probe
                if low >= BATCH_MAX:
                    break
            else:
                high = probe
            probe = (
                (low + high) // 2
                if high and low > 1
                else (int(probe * 1.02) + 1 if not high else int(probe * 0.97))
            )
        return low

    def largest_near(self, limit_bytes: int, reference_bytes: int) -> int:
        """As `largest`, from one replayed answer at a reference limit: for tables of many cards."""
        if self._tightness is None:
            best = self.largest(reference_bytes)
            self._tightness = self.need_bytes(best) / reference_bytes if best else LIMIT_SHARE
        room = limit_bytes * self._tightness
        if self.need_bytes(1) > room:
            return 0
        return max(1, self._guess(room))

    def _guess(self, room: float) -> int:
        """Where the need, a straight line beyond small batches, meets the room."""
        one = self.need_bytes(1)
        near = 8
        while True:
            first, second = self.need_bytes(near), self.need_bytes(2 * near)
            slope = (second - first) / near
            if (slope > 0 and second >= 1.2 * one) or near >= BATCH_MAX // 2:
                break
            near *= 8
        if slope <= 0:
            return BATCH_MAX
        return int(min(max(1.0, near + (room - first) / slope), BATCH_MAX))

    def _lean(self, batch: int) -> Scene:
        scene = self._scene_of(batch)
        scene.workspaces = [
            0 if work.family.startswith("conv") else size
            for work, size in zip(scene.works, scene.workspaces, strict=True)
        ]
        return scene
