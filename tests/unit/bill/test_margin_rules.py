"""How the cost of a host is divided: whatever happens on it, a day's lines add up to what it cost."""

from fractions import Fraction
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as some

from teraflock.base.clock import DAY_US
from teraflock.base.size import Size
from teraflock.bill.margin.model import CARD_PARTS, CostRate, HostPart, HostSize, HostUse, OpenUse
from teraflock.bill.margin.rules import HOUR_US, cost_of_day, ends_at, gpu_parts, shares, take
from teraflock.bill.verify.costs import LINE, _lines
from teraflock.instance.states import Phase
from teraflock.meter.model import Change, Holding
from teraflock.tenant.model import NO_PROJECT, ProjectId

GB = 1 << 30
WHOLE = HostPart(gpu_parts=4 * CARD_PARTS, vcpus=64, ram_bytes=512 * GB)
TIMES = some.integers(0, 3 * DAY_US)
PARTS = some.builds(
    HostPart,
    gpu_parts=some.integers(0, 4).map(lambda count: count * CARD_PARTS),
    vcpus=some.integers(0, 64),
    ram_bytes=some.integers(0, 512).map(lambda count: count * GB),
)


def rate(from_us: int, micros: int | None, instance_id: str = "") -> CostRate:
    return CostRate(
        host_id="hst_1", instance_id=instance_id, project_id=ProjectId("prj_1") if instance_id else NO_PROJECT,
        from_us=from_us, micros_per_hour=micros, currency="USD", recorded_at_us=0,
    )  # fmt: skip


def use(instance: str, from_us: int, until_us: int, held: HostPart) -> HostUse:
    return HostUse(
        instance_id=instance, sequence=from_us, host_id="hst_1", project_id=ProjectId("prj_1"), from_us=from_us,
        until_us=until_us, held=held,
    )  # fmt: skip


@some.composite
def uses(draw: some.DrawFn) -> list[HostUse]:
    """Of each instance, stretches that follow one another."""
    found = []
    for instance in range(draw(some.integers(0, 3))):
        edges = sorted(draw(some.sets(TIMES, min_size=2, max_size=6)))
        found += [
            use(f"ins_{instance}", from_us, until_us, draw(PARTS)) for from_us, until_us in pairwise(edges)
        ]
    return found


RATES = some.lists(some.builds(rate, TIMES, some.none() | some.integers(0, 10**7)), min_size=1, max_size=4)
SIZES = some.dictionaries(TIMES, PARTS, max_size=3).map(
    lambda found: [HostSize(host_id="hst_1", from_us=us, whole=found[us]) for us in sorted(found)]
)


@given(RATES, SIZES, uses(), some.integers(1, 3 * DAY_US))
def test_lines_add_up_to_what_the_host_cost(
    rates: list[CostRate], sizes: list[HostSize], used: list[HostUse], until_us: int
) -> None:
    lines = [line for day in range(3) for line in cost_of_day(day, until_us, rates, sizes, used)]
    assert all(line.micros > 0 for line in lines), "nothing is idle below zero"
    exact = Fraction(0)
    edges = sorted({0, until_us, *(each.from_us for each in rates if each.from_us < until_us)})
    for from_us, to_us in pairwise(edges):
        counting = [each for each in rates if each.from_us <= from_us]
        exact += Fraction((counting[-1].micros_per_hour or 0) * (to_us - from_us), HOUR_US) if counting else 0
    assert abs(sum(line.micros for line in lines) - exact) <= len(edges)


@given(RATES, SIZES, uses())
def test_the_proof_works_out_the_same_lines(
    rates: list[CostRate], sizes: list[HostSize], used: list[HostUse]
) -> None:
    """Two texts that share no code."""
    named = [{**_fields(each), "number": number} for number, each in enumerate(rates)]
    named_sizes = [{"from_us": each.from_us, **_fields(each.whole)} for each in sizes]
    named_uses = [{**_fields(each), **_fields(each.held)} for each in used]
    for day in range(4):
        lines = cost_of_day(day, (day + 1) * DAY_US, rates, sizes, used)
        made = sorted(tuple(getattr(line, name) for name in LINE) for line in lines)
        assert made == sorted(_lines(day, named, named_sizes, named_uses))


def _fields(value: object) -> dict[str, object]:
    return {name: getattr(value, name) for name in value.__struct_fields__}  # type: ignore[attr-defined]


@given(PARTS, some.lists(PARTS, max_size=5))
def test_shares_never_exceed_the_whole(whole: HostPart, held: list[HostPart]) -> None:
    found = shares(whole, held)
    assert sum(found, Fraction(0)) <= 1
    assert all(share >= 0 for share in found)


def test_cards_count_first_and_processors_with_memory_only_where_there_are_none() -> None:
    one = HostPart(gpu_parts=CARD_PARTS, vcpus=60, ram_bytes=500 * GB)
    assert shares(WHOLE, [one]) == [Fraction(1, 4)]
    assert shares(WHOLE, [HostPart(vcpus=64, ram_bytes=512 * GB)]) == [0], (
        "it holds no card of a host with cards"
    )
    plain = HostPart(vcpus=64, ram_bytes=512 * GB)
    assert shares(plain, [HostPart(vcpus=32, ram_bytes=128 * GB)]) == [Fraction(3, 8)]
    assert shares(plain, [plain, plain, plain]) == [Fraction(1, 3)] * 3, "overcommitted"


def test_a_slice_is_its_share_of_a_card() -> None:
    assert gpu_parts("V100-SXM2", 2) == 2 * CARD_PARTS
    assert 0 < gpu_parts("A100-SXM4-80GB:1g.10gb", 1) <= CARD_PARTS


def test_a_rented_host_serves_its_instance_alone() -> None:
    rates = [
        rate(HOUR_US, 900_000, "ins_1"),
        rate(3 * HOUR_US, 600_000, "ins_1"),
        rate(4 * HOUR_US, 0, "ins_1"),
    ]
    lines = cost_of_day(0, DAY_US, rates, [], [])
    assert [(line.kind, line.instance_id, line.micros) for line in lines] == [
        ("rental", "ins_1", 1_800_000),
        ("rental", "ins_1", 600_000),
    ]
    assert ends_at(rates) == 4 * HOUR_US
    assert ends_at(rates[:2]) is None


def test_a_use_lasts_from_the_claim_until_the_host_is_free_again() -> None:
    def change(sequence: int, at_us: int, phase: Phase) -> Change:
        held = Holding(host="hst_1", size=Size(gpu="V100-SXM2", gpus=1, vcpus=8, ram_bytes=GB))
        return Change(
            instance_id="ins_1", project_id=ProjectId("prj_1"), sequence=sequence, generation=0, at_us=at_us,
            phase=phase, held=held,
        )  # fmt: skip

    at, over = OpenUse(instance_id="ins_1"), []
    phases = (Phase.QUEUED, Phase.STARTING, Phase.RUNNING, Phase.STOPPING, Phase.STOPPED, Phase.STARTING)
    for sequence, phase in enumerate(phases, start=1):
        at, ended = take(at, change(sequence, sequence * 10, phase))
        over += [ended] if ended else []
    assert [(each.from_us, each.until_us, each.sequence) for each in over] == [(10, 50, 1)]
    assert (at.from_us, at.host_id) == (60, "hst_1")
    _, ended = take(at, change(7, 55, Phase.GONE))
    assert ended is None, "a clock that was set back ends nothing before it began"
