"""Which batch still fits: the allocator replayed under a limit.

Short of memory PyTorch gives its cache back and cuDNN takes ways that need no workspace, so the question is
not what a comfortable run reserves but whether the replay without convolution workspaces finds room. The
margin left below the limit, only where there are convolutions, covers the workspaces that remain.
"""

from collections.abc import Callable
from typing import Final

from teraflock.estimate.fitting import fits_within
from teraflock.estimate.memory import Scene, plain_peak

LIMIT_SHARE: Final = 0.978
RESOLUTION: Final = 0.004
"""Of the batch: finer than the two to three per cent the measured answers resolve."""
RESOLUTION_COARSE: Final = 0.02
BATCH_MAX: Final = 1 << 20


class BatchFinder:
    """Answers for one workload; `scene_of` gives the trace at a batch, lean."""

    def __init__(
        self,
        scene_of: Callable[[int], Scene],
        optimizer: str,
        cublas_bytes: int,
        *,
        extra_bytes: int = 0,
        near: int = 8,
        share: float = LIMIT_SHARE,
        temporary_share: float = 1.0,
    ) -> None:
        """`temporary_share` of the optimizer's temporaries is on this GPU, where several split the state."""
        self._scene_of = scene_of
        self._optimizer = optimizer
        self._cublas_bytes = cublas_bytes
        self._extra_bytes = extra_bytes
        self._needs: dict[int, int] = {}
        self._tightness: float | None = None
        self._near = max(1, near)
        self._share = share
        self._temporary_share = temporary_share

    def need_bytes(self, batch: int) -> int:
        """The live peak without convolution workspaces."""
        if batch not in self._needs:
            peak = plain_peak(
                self._scene_of(batch),
                self._optimizer,
                cublas_bytes=self._cublas_bytes,
                temporary_share=self._temporary_share,
            )
            self._needs[batch] = peak + self._extra_bytes
        return self._needs[batch]

    def fits(self, batch: int, limit_bytes: int) -> bool:
        limit = int(limit_bytes * self._share) - self._extra_bytes
        scene = self._scene_of(batch)
        return fits_within(
            scene,
            self._optimizer,
            cublas_bytes=self._cublas_bytes,
            limit_bytes=limit,
            temporary_share=self._temporary_share,
        )

    def largest(self, limit_bytes: int, resolution: float = RESOLUTION) -> int:
        """The largest batch that fits, by replay; 0 where not even one sample does."""
        if self.need_bytes(1) > limit_bytes * self._share:
            return 0  # more is reserved than lives, so no replay can find room
        low, high = 0, BATCH_MAX + 1
        probe = self._guess(limit_bytes * self._share)
        while high - low > max(1, resolution * low):
            probe = min(max(probe, low + 1), high - 1)
            if self.fits(probe, limit_bytes):
                low = probe
                probe = int(probe * 1.015) + 1 if high > BATCH_MAX else (low + high) // 2
            else:
                high = probe
                probe = int(probe * 0.98) if not low else (low + high) // 2
                if not low and probe < high // 2 + 2:
                    probe = high // 2
        return low

    def largest_near(self, limit_bytes: int, reference_bytes: int) -> int:
        """As `largest`, from one replayed answer at a reference limit: for tables of many cards."""
        if self._tightness is None:
            best = self.largest(reference_bytes, RESOLUTION_COARSE)
            self._tightness = self.need_bytes(best) / reference_bytes if best else self._share
        room = limit_bytes * self._tightness
        if self.need_bytes(1) > room:
            return 0
        return max(1, self._guess(room))

    def _guess(self, room: float) -> int:
        """Where the need, a straight line beyond small batches, meets the room."""
        near = self._near
        while True:
            first, second = self.need_bytes(near), self.need_bytes(2 * near)
            slope = (second - first) / near
            # The optimizer's temporaries hide small batches: look further up for the line.
            if slope * near > 0.05 * first or near >= BATCH_MAX // 2:
                break
            near *= 8
        self._near = near
        if slope <= 0:
            return BATCH_MAX
        return int(min(max(1.0, near + (room - first) / slope), BATCH_MAX))
