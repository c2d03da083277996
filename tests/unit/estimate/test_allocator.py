"""The caching allocator: invariants under any order of allocations and frees, and examples of its sizes."""

import gc
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from teraflock.estimate.allocator import MIB, Block, CachingAllocator, OutOfMemory

SIZES = st.one_of(st.integers(1, 4096), st.integers(1, 3 * MIB), st.integers(MIB, 64 * MIB))
MOVES = st.lists(st.tuples(st.booleans(), SIZES, st.integers(0, 1 << 30)), max_size=120)


def played(allocator: CachingAllocator, moves: list[tuple[bool, int, int]]) -> list[Block]:
    held: list[Block] = []
    asked = 0
    for gives, size, choice in moves:
        if gives and held:
            allocator.release(held.pop(choice % len(held)))
        else:
            held.append(allocator.allocate(size))
            asked += size
        assert sum(block.size for block in held) == allocator.live_bytes
        assert allocator.live_bytes <= allocator.reserved_bytes <= allocator.reserved_peak_bytes
        assert allocator.live_bytes <= allocator.live_peak_bytes <= allocator.reserved_peak_bytes
    return held


@given(MOVES, st.booleans())
@settings(max_examples=150, deadline=None)
def test_live_never_exceeds_reserved_and_blocks_never_overlap(
    moves: list[tuple[bool, int, int]], expandable: bool
) -> None:
    allocator = CachingAllocator(expandable_segments=expandable)
    held = played(allocator, moves)
    spans = sorted((block.address, block.address + block.size) for block in held)
    assert all(end <= start for (_, end), (start, _) in pairwise(spans))
    for block in held:
        allocator.release(block)
    assert allocator.live_bytes == 0


@given(MOVES)
@settings(max_examples=80, deadline=None)
def test_a_limit_at_the_unlimited_peak_changes_nothing(moves: list[tuple[bool, int, int]]) -> None:
    free = CachingAllocator()
    played(free, moves)
    capped = CachingAllocator(free.reserved_peak_bytes)
    played(capped, moves)
    assert capped.live_peak_bytes == free.live_peak_bytes


@pytest.mark.parametrize(
    ("size", "live", "reserved"),
    [(1, 512, 2 * MIB), (MIB, MIB, 2 * MIB), (MIB + 1, MIB + 512, 20 * MIB), (11 * MIB, 12 * MIB, 12 * MIB)],
)
def test_sizes_are_rounded_as_pytorch_rounds_them(size: int, live: int, reserved: int) -> None:
    allocator = CachingAllocator()
    allocator.allocate(size)
    assert (allocator.live_bytes, allocator.reserved_bytes) == (live, reserved)


def test_free_segments_are_returned_before_out_of_memory() -> None:
    allocator = CachingAllocator(30 * MIB)
    allocator.release(allocator.allocate(20 * MIB))
    allocator.allocate(24 * MIB)
    with pytest.raises(OutOfMemory):
        allocator.allocate(20 * MIB)


def test_a_closed_allocator_leaves_no_reference_cycles() -> None:
    gc.freeze()  # what exists is not searched: all tests of a worker made it
    gc.disable()
    try:
        allocator = CachingAllocator()
        held = [allocator.allocate(size) for size in (MIB, 512, 4096, 30 * MIB, 3 * MIB, 5 * MIB)]
        allocator.release(held.pop(1))
        allocator.close()
        del allocator, held
        assert gc.collect() == 0
    finally:
        gc.enable()
