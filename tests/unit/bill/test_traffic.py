"""Outgoing traffic is charged by the day, each byte at its price, independent of how often it is read."""

from fractions import Fraction
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import astuple
from tests.unit.bill.test_charges import BOOK, START_US, TARIFF
from tests.unit.bill.world import BOOK as PRICES
from tests.unit.bill.world import GB, RATES, World

from teraflock.base.clock import DAY_US
from teraflock.base.size import Size
from teraflock.bill.charge.model import Charge
from teraflock.bill.charge.rules import Tariff
from teraflock.bill.charge.traffic import traffic_charges
from teraflock.bill.price.book import read_book
from teraflock.bill.price.model import FOREVER_US, Period, PriceBook, PricePlace
from teraflock.bill.price.service import PriceService
from teraflock.bill.quote import most_expensive
from teraflock.bill.verify.service import verify
from teraflock.instance.states import Phase
from teraflock.meter.model import Change, Holding
from teraflock.meter.reading.model import MeterReading
from teraflock.tenant.model import ProjectId

DAY = (START_US + 3 * DAY_US) // DAY_US
"""The day in which prices of BOOK change."""
HELD = {
    1: Holding(
        size=Size(gpu="V100-SXM2", gpus=4, vcpus=8, disk_bytes=9), host="hst_1", region="home", name="box"
    ),
    2: Holding(
        size=Size(gpu="V100-SXM2", gpus=2, vcpus=8, disk_bytes=9), host="hst_1", region="home", name="box"
    ),
    3: Holding(
        size=Size(gpu="V100-SXM2", gpus=2, vcpus=8, disk_bytes=9), host="hst_1", region="north", name="box"
    ),
}
CHANGES = {
    sequence: Change(
        instance_id="ins", project_id=ProjectId("prj"), sequence=sequence, generation=0, at_us=0,
        phase=Phase.RUNNING, held=held
    )
    for sequence, held in HELD.items()
}  # fmt: skip


@st.composite
def days(draw: st.DrawFn) -> list[MeterReading]:
    made, count = [], 0
    for number in range(1, draw(st.integers(1, 8)) + 1):
        sent = draw(st.integers(1, 7 * GB))
        made.append(
            MeterReading(
                number=number, instance_id="ins", sequence=draw(st.sampled_from([1, 2, 3])), epoch="1",
                bytes=count + sent, bytes_before=count, at_us=DAY * DAY_US + draw(st.integers(0, DAY_US - 1)),
            )
        )  # fmt: skip
        count += sent
    return made


@given(readings=days())
def test_each_byte_costs_the_price_of_its_time(readings: list[MeterReading]) -> None:
    charges = traffic_charges(DAY, readings, CHANGES, TARIFF)
    assert sum(charge.slice.egress_bytes for charge in charges) == readings[-1].bytes
    exact = sum((Fraction(each.sent_bytes * _unit(each.at_us), GB) for each in readings), Fraction(0))
    charged = sum(charge.micros for charge in charges)
    assert exact - len(charges) < charged <= exact, "floored once a line"
    for charge in charges:
        assert charge.micros == charge.slice.amounts.egress == charge.slice.list_micros
        assert charge.slice.from_us // DAY_US == (charge.slice.until_us - 1) // DAY_US == DAY
        assert not any(astuple(charge.subject.held.size)[1:])
    assert [charge.segment for charge in charges] == list(range(len(charges)))


def _unit(us: int) -> int:
    period = BOOK.at(us)
    assert period is not None
    return period.prices.general.egress or 0


@given(readings=days(), cuts=st.lists(st.integers(1, 20), min_size=1, max_size=3))
def test_the_charge_does_not_depend_on_how_often_traffic_is_read(
    readings: list[MeterReading], cuts: list[int]
) -> None:
    """Split each reading into several at the same time of day."""
    finer: list[MeterReading] = []
    for each in readings:
        ways = (each.bytes_before + each.sent_bytes * cut // 20 for cut in cuts)
        for before, after in pairwise(sorted({each.bytes_before, each.bytes, *ways})):
            finer.append(
                MeterReading(
                    number=len(finer) + 1, instance_id="ins", sequence=each.sequence, epoch="1", bytes=after,
                    bytes_before=before, at_us=each.at_us,
                )
            )  # fmt: skip
    assert _plain(traffic_charges(DAY, finer, CHANGES, TARIFF)) == _plain(
        traffic_charges(DAY, readings, CHANGES, TARIFF)
    )


def _plain(charges: list[Charge]) -> list[tuple[object, ...]]:
    return [(charge.slice, charge.subject) for charge in charges]


def test_traffic_is_booked_when_its_day_ends() -> None:
    world = World()
    PriceService(world.database, world.clock, RATES).take(PRICES, name="prices.yaml", member="mem_1")
    world.move("ins_1", Phase.RUNNING)
    world.sent("ins_1", 3 * GB)
    world.wait(hours=14)
    world.sent("ins_1", 4 * GB)
    world.wait(hours=2)  # it is tomorrow
    world.sent("ins_1", GB, epoch="2")
    world.book()
    lines = world.rows(
        "SELECT egress_bytes, egress_micros, micros, from_us FROM charge WHERE egress_bytes > 0 ORDER BY number"
    )
    assert lines == [(4 * GB, 200_000, 200_000, START_US)], "from when prices counted on, until midnight"
    world.book()
    world.wait(days=1)
    world.book()
    assert world.rows("SELECT SUM(egress_bytes) FROM charge") == [(5 * GB,)]
    assert verify(world.database).faults == ()
    world.database.close()


def test_a_quote_uses_the_most_expensive_place() -> None:
    text = """\
- from: 2026-01-01
  currency: USD
  gpu: {V100: 3/hour}
  egress: 0.05
  snapshot: 0.1/month
  regions: {north: {gpu: {V100: 4/hour}, egress: 0.09}}
  hosts: {hst_7: {gpu: {V100: 2/hour}}}
"""
    (draft,) = read_book(text, name="book", rates=RATES)
    period = Period(version=1, from_us=0, until_us=FOREVER_US, prices=draft.prices)
    tariff = Tariff(PriceBook([period]), "USD")
    held = Holding(size=Size(gpu="V100-SXM2", gpus=1))
    everywhere = [
        PricePlace("hst_1", "home"),
        PricePlace("hst_2", "home"),
        PricePlace("hst_3", "north"),
        PricePlace("hst_7", "north"),
    ]
    found = most_expensive(held, everywhere, tariff, period, START_US)
    assert (found.micros_per_hour, found.egress_micros_per_gb, found.region) == (4_000_000, 90_000, "north")
    found = most_expensive(held, everywhere[-1:], tariff, period, START_US)
    assert (found.micros_per_hour, found.egress_micros_per_gb, found.region) == (2_000_000, 90_000, "")
    found = most_expensive(held, [], tariff, period, START_US)
    assert (found.micros_per_hour, found.snapshot_micros_per_gb, found.region) == (3_000_000, 100_000, "")
