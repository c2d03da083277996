"""Live peaks by batch, and the largest batch for a live peak.

A live peak is a convex function of the batch: the maximum of sums of tensors, each of which grows with the batch. So
between two known batches it is at most the line between them, and at least the extensions of the lines next to it.
Usually these bounds agree, and a batch is found without computing its peak.
"""

from bisect import bisect_left
from collections.abc import Callable
from itertools import count
from typing import Final

BATCH_MAX: Final = 1 << 20


class LivePeaks:
    def __init__(self, peak_of: Callable[[int], int]) -> None:
        self._peak_of = peak_of
        self._peaks: dict[int, int] = {}
        self._batches: list[int] = []
        """The keys of `_peaks`, in order."""

    def at(self, batch: int) -> int:
        if batch not in self._peaks:
            self._peaks[batch] = self._peak_of(batch)
            self._batches.insert(bisect_left(self._batches, batch), batch)
        return self._peaks[batch]

    def largest(self, peak_max: float) -> int:
        """The largest batch, up to `BATCH_MAX`, whose live peak is at most `peak_max`; 0 if there is none."""
        if self.at(1) > peak_max:
            return 0
        if self.at(BATCH_MAX) <= peak_max:
            return BATCH_MAX
        self.at(BATCH_MAX // 2)  # with BATCH_MAX the slope for large batches
        for turn in count():
            low, least, most = self._bounds(int(peak_max))
            if most <= least:
                break
            # Lines find the end of a linear part at once. The middle bounds the search if nothing is linear.
            self.at((most, max(least, low + 1), (least + most + 1) // 2)[turn % 3])
        return least

    def _bounds(self, peak_max: int) -> tuple[int, int, int]:
        """The nearest known batch below the largest one, and bounds of the largest one."""
        batches = self._batches
        at = bisect_left(batches, True, key=lambda batch: self._peaks[batch] > peak_max)
        low, high = batches[at - 1], batches[at]
        most = high - 1
        if at > 1:
            most = min(most, self._where(batches[at - 2], low, peak_max))
        if at + 1 < len(batches):
            most = min(most, self._where(high, batches[at + 1], peak_max))
        return low, self._where(low, high, peak_max), most

    def _where(self, first: int, second: int, peak_max: int) -> int:
        """The largest batch at which the line through two batches is at most `peak_max`."""
        start, rise = self._peaks[first], self._peaks[second] - self._peaks[first]
        return first + (peak_max - start) * (second - first) // rise if rise > 0 else BATCH_MAX
