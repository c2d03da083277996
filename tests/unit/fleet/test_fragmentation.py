"""Free cards and how they are spread: the sums equal a count host by host."""

from hypothesis import given
from hypothesis import strategies as st

from teraflock.fleet.fragmentation import SIZES, CardBlock, capacities


@st.composite
def blocks(draw: st.DrawFn) -> list[CardBlock]:
    made = []
    for _ in range(draw(st.integers(0, 8))):
        cards = draw(st.integers(1, 16))
        free = draw(st.integers(0, cards))
        broken = draw(st.integers(0, cards - free))
        made.append(CardBlock(draw(st.sampled_from("AB")), cards, free, broken, draw(st.integers(1, 5))))
    return made


@given(blocks())
def test_capacity_equals_a_count_host_by_host(found: list[CardBlock]) -> None:
    hosts = [each for each in found for _ in range(each.hosts)]
    result = capacities(found)
    assert [each.gpu for each in result] == sorted({each.gpu for each in hosts})
    for capacity in result:
        own = [each for each in hosts if each.gpu == capacity.gpu]
        assert (capacity.cards, capacity.free) == (sum(h.cards for h in own), sum(h.free for h in own))
        assert capacity.broken == sum(h.broken for h in own)
        assert capacity.largest == max(h.free for h in own)
        widest = max(h.cards for h in own)
        assert list(capacity.fits) == [size for size in SIZES if size <= widest]
        for size, count in capacity.fits.items():
            assert count == sum(len(range(size, h.free + 1, size)) for h in own)
            assert count * size <= capacity.free


def test_scattered_cards_serve_no_large_instance() -> None:
    (capacity,) = capacities([CardBlock("V100", 8, 1, 0, 8)])
    assert capacity.free == 8
    assert capacity.fits == {1: 8, 2: 0, 4: 0, 8: 0}
