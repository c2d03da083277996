"""Replays PyTorch's CUDA caching allocator.

It follows c10/cuda/CUDACachingAllocator.cpp with default settings: sizes are rounded up to 512 bytes. Blocks up to
1 MiB come from 2 MiB segments, blocks below 10 MiB from 20 MiB segments, larger ones from segments in multiples of
2 MiB. The smallest block that fits is used and split. Free neighbours merge. Invariants:
- `live_bytes` counts whole blocks, as `torch.cuda.memory_allocated` does, and never exceeds `reserved_bytes`;
- with a limit, the allocator returns completely free segments before it raises `OutOfMemory`.
"""

from bisect import bisect_left, insort
from typing import Final

import msgspec

MIB: Final = 1 << 20
ROUND_BYTES: Final = 512
SMALL_BYTES_MAX: Final = MIB
SMALL_SEGMENT_BYTES: Final = 2 * MIB
MIDDLE_BYTES_MIN: Final = 10 * MIB
MIDDLE_SEGMENT_BYTES: Final = 20 * MIB
LARGE_ROUND_BYTES: Final = 2 * MIB


class OutOfMemory(Exception):
    """The replay could not place a block within the limit."""


class Block(msgspec.Struct, eq=False, gc=False):
    """A part of a segment, linked to its neighbours. `gc=False` is safe because `close` removes the links."""

    size: int
    small: bool
    address: int
    free: bool = False
    before: "Block | None" = None
    after: "Block | None" = None


class CachingAllocator:
    def __init__(
        self, limit_bytes: int | None = None, *, expandable_segments: bool = False, grows: bool = False
    ) -> None:
        """With `grows`, the allocator raises its limit where it would otherwise raise `OutOfMemory`."""
        self.limit_bytes = limit_bytes
        self.grows = grows
        self.expandable = expandable_segments
        self.live_bytes = 0
        self.live_peak_bytes = 0
        self.reserved_bytes = 0
        self.reserved_peak_bytes = 0
        self._next_address = 0
        self._segments: list[Block] = []
        # Free blocks of the small and the large pool, ordered by size and address.
        self._free: tuple[list[tuple[int, int, Block]], list[tuple[int, int, Block]]] = ([], [])

    def allocate(self, size_bytes: int) -> Block:
        size = (size_bytes + ROUND_BYTES - 1) & -ROUND_BYTES or ROUND_BYTES
        small = size <= SMALL_BYTES_MAX
        free = self._free[0] if small else self._free[1]
        at = bisect_left(free, (size,))
        block = free.pop(at)[2] if at < len(free) else self._segment(size, small)
        rest = block.size - size
        if rest >= ROUND_BYTES if small or self.expandable else rest > SMALL_BYTES_MAX:
            # Split the block. Inlined: a search for the largest batch runs this a hundred thousand times.
            after = block.after
            other = Block(rest, small, block.address + size, True, block, after)
            if after is not None:
                after.before = other
            block.after, block.size = other, size
            insort(free, (rest, other.address, other))
        block.free = False
        live = self.live_bytes = self.live_bytes + block.size
        if live > self.live_peak_bytes:
            self.live_peak_bytes = live
        return block

    def release(self, block: Block) -> None:
        self.live_bytes -= block.size
        free = self._free[0] if block.small else self._free[1]
        before, after = block.before, block.after
        if before is not None and before.free:
            del free[bisect_left(free, (before.size, before.address))]
            before.size += block.size
            before.after = after
            if after is not None:
                after.before = before
            block = before
        if after is not None and after.free:
            del free[bisect_left(free, (after.size, after.address))]
            block.size += after.size
            block.after = after.after
            if block.after is not None:
                block.after.before = block
        block.free = True
        insort(free, (block.size, block.address, block))

    def close(self) -> None:
        """Unlink all blocks, so that they are freed without the garbage collector, which is slower."""
        for first in self._segments:
            block: Block | None = first
            while block is not None:
                block.before, block.after, block = None, None, block.after

    def reserve(self, size: int) -> None:
        """Reserve memory of the device within the limit, if necessary by freeing the cache."""
        if self.limit_bytes is not None and self.reserved_bytes + size > self.limit_bytes:
            self._give_back()
            if self.reserved_bytes + size > self.limit_bytes:
                if not self.grows:
                    raise OutOfMemory
                self.limit_bytes = self.reserved_bytes + size
        self.reserved_bytes += size
        if self.reserved_bytes > self.reserved_peak_bytes:
            self.reserved_peak_bytes = self.reserved_bytes

    def _segment(self, size: int, small: bool) -> Block:
        if self.expandable:
            need = -(-size // LARGE_ROUND_BYTES) * LARGE_ROUND_BYTES
        elif small:
            need = SMALL_SEGMENT_BYTES
        elif size < MIDDLE_BYTES_MIN:
            need = MIDDLE_SEGMENT_BYTES
        else:
            need = -(-size // LARGE_ROUND_BYTES) * LARGE_ROUND_BYTES
        self.reserve(need)
        address = self._next_address
        self._next_address += need
        block = Block(need, small, address)
        self._segments.append(block)
        return block

    def _give_back(self) -> None:
        """Return completely free segments to the device."""
        for free in self._free:
            kept = [entry for entry in free if entry[2].before is not None or entry[2].after is not None]
            self.reserved_bytes -= sum(entry[0] for entry in free) - sum(entry[0] for entry in kept)
            free[:] = kept
