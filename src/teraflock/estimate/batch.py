"""Finds the largest batch that fits into an amount of memory.

When memory is short, PyTorch frees its cache and cuDNN chooses algorithms without a workspace. So a batch fits if the
replay without convolution workspaces succeeds, even if a run with enough memory would reserve more. A margin below the
limit, used only for models with convolutions, covers the workspaces that remain.

Because memory is fragmented, a step needs more than its live peak. This excess takes a replay to compute, and changes
slowly with the amount of memory. So it is computed for a few fixed amounts, the rungs, and interpolated between them.
Invariant: the result depends only on the workload and the amount of memory, not on other amounts that were asked for.
"""

from collections.abc import Callable
from math import log2
from typing import Final, TypedDict

from teraflock.base.quantities import GIB
from teraflock.estimate.fitting import fits_within, sufficient_bytes
from teraflock.estimate.live_peak import LivePeaks
from teraflock.estimate.memory import Scene, plain_peak

LIMIT_SHARE: Final = 0.978
RUNG_BYTES: Final = 17 * GIB // 4
RUNG_LOG2: Final = 2
RUNG_LAST: Final = 2
"""The rungs are `RUNG_BYTES` times powers of four: 4.25, 17 and 68 GiB. Outside, the excess is that of the nearest."""
EXCESS_ERROR_MAX: Final = 0.05
BATCH_ERROR_MAX: Final = 0.02


class _Options(TypedDict):
    cublas_bytes: int
    temporary_share: float


class BatchFinder:
    """Finds batches for one workload. `scene_of` returns the lean scene for a batch."""

    def __init__(
        self,
        scene_of: Callable[[int], Scene],
        optimizer: str,
        cublas_bytes: int,
        *,
        extra_bytes: int = 0,
        share: float = LIMIT_SHARE,
        temporary_share: float = 1.0,
    ) -> None:
        """`temporary_share` is the part of the optimizer's temporaries on this GPU if several GPUs split the state."""
        self._scene_of = scene_of
        self._optimizer = optimizer
        self._extra_bytes = extra_bytes
        self._share = share
        self._options: _Options = {"cublas_bytes": cublas_bytes, "temporary_share": temporary_share}
        self._peaks = LivePeaks(
            lambda batch: plain_peak(scene_of(batch), optimizer, **self._options) + extra_bytes
        )
        self._excess_at: dict[int, float] = {}
        """By rung."""
        self._excess_of: dict[int, float] = {}
        """By batch: rungs that are too small for one sample share it."""

    def need_bytes(self, batch: int) -> int:
        """The live peak without convolution workspaces."""
        return self._peaks.at(batch)

    def largest(self, limit_bytes: int) -> int:
        """The largest batch that fits; 0 if not even one sample fits."""
        if self.need_bytes(1) > limit_bytes * self._share:
            return 0  # reserved memory is at least live memory, so no replay can succeed
        return self._peaks.largest(self._peak_max(limit_bytes))

    def fits(self, batch: int, limit_bytes: int) -> bool:
        """Whether the largest batch is at least this one."""
        need = self.need_bytes(batch)
        return need <= limit_bytes * self._share and need <= self._peak_max(limit_bytes)

    def _peak_max(self, limit_bytes: int) -> float:
        """The highest live peak that fits."""
        rung = min(max(0.0, log2(max(1, limit_bytes) / RUNG_BYTES) / RUNG_LOG2), RUNG_LAST)
        below = int(rung)
        part = rung - below
        excess = self._excess(below)
        if part:
            excess += part * (self._excess(below + 1) - excess)
        return limit_bytes * self._share / excess

    def _excess(self, rung: int) -> float:
        """The memory that a step needs at this rung, relative to its live peak."""
        if rung not in self._excess_at:
            limit = int(RUNG_BYTES * 2.0 ** (RUNG_LOG2 * rung) * self._share)
            batch = max(1, self._peaks.largest(limit))
            found = 0 if self._scene_of(batch).trace.has_backward else self._largest_replayed(limit, batch)
            self._excess_at[rung] = limit / self.need_bytes(found) if found else self._excess_alone(batch)
        return self._excess_at[rung]

    def _largest_replayed(self, limit_bytes: int, most: int) -> int:
        """The largest batch of an inference that fits by replay; 0 if none does.

        An inference has few blocks, so its replay is fast. But which of them are reused, and with that the excess, can
        change a lot with the limit.
        """
        low, high, probe = 0, most + 1, most
        while high - low > max(1, BATCH_ERROR_MAX * low):
            if self._replays(probe, limit_bytes - self._extra_bytes):
                low = probe
            else:
                high = probe
            probe = (low + high) // 2 if low else max(1, int(0.9 * high))
        return low

    def _excess_alone(self, batch: int) -> float:
        """The smallest limit for a batch, relative to its live peak."""
        if batch not in self._excess_of:
            need = self.need_bytes(batch)
            low = need - self._extra_bytes
            high = sufficient_bytes(self._scene_of(batch), self._optimizer, least_bytes=low, **self._options)
            while high - low > EXCESS_ERROR_MAX * need:
                middle = (low + high) // 2
                if self._replays(batch, middle):
                    high = middle
                else:
                    low = middle
            self._excess_of[batch] = (high + self._extra_bytes) / need
        return self._excess_of[batch]

    def _replays(self, batch: int, limit_bytes: int) -> bool:
        return fits_within(self._scene_of(batch), self._optimizer, limit_bytes=limit_bytes, **self._options)
