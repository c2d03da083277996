"""The auction: random hosts and bidders. What must hold of every result, whoever takes part."""

from datetime import UTC, datetime, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from teraflock.base.size import Size
from teraflock.fleet.model import HostId
from teraflock.fleet.placement import PlaceTerms
from teraflock.fleet.room import Room
from teraflock.instance.bid.model import Bidder, CardClaim, Demand, Share
from teraflock.instance.bid.rules import outcome, pool_of, returning, shares

START = datetime(2026, 3, 5, tzinfo=UTC)
GPU = "V100-SXM2"
FLOOR = 10


def need(gpus: int) -> Size:
    return Size(gpu=GPU, gpus=gpus, vcpus=gpus, ram_bytes=gpus)


def room(cards: int, name: str = "hst_1") -> Room:
    return Room(
        host_id=HostId(name), name=name, site="lab", threads=1000, vcpus=cards, ram_bytes=cards, disk_bytes=1000,
        free_gpus={GPU: cards}, gpus_total=8,
    )  # fmt: skip


def bidder(number: int, bid: int, gpus: int = 1, *, runs: bool = False, firm: bool = False) -> Bidder:
    return Bidder(
        id=f"ins_{number:03}",
        need=need(gpus),
        bid=bid,
        since=START + timedelta(seconds=number),
        runs=runs,
        is_firm=firm,
    )


BIDDERS = st.lists(
    st.tuples(st.integers(5, 30), st.integers(1, 3), st.booleans(), st.booleans()), max_size=8
).map(
    lambda drawn: [
        bidder(number, bid, gpus, runs=runs, firm=firm)
        for number, (bid, gpus, runs, firm) in enumerate(drawn)
    ]
)


@given(BIDDERS, st.integers(0, 4), st.integers(0, 3))
@settings(max_examples=200, deadline=None)
def test_no_card_is_sold_twice_and_prices_are_losing_bids_or_the_floor(
    bidders: list[Bidder], free: int, claimed: int
) -> None:
    here = room(free)
    pool = pool_of(here, bidders)
    claimed = min(claimed, pool.free_gpus[GPU])
    share = Share(claims=(CardClaim("que_1", need(claimed)),) if claimed else ())
    found = outcome(here, bidders, share, {GPU: FLOOR})
    won = [each for each in bidders if each.id in found.winners]
    lost = [each for each in bidders if each.id not in found.winners]
    assert sum(each.need.gpus for each in won) + claimed <= pool.free_gpus[GPU]
    assert all(each.bid >= FLOOR for each in won)
    for each in won:
        price = found.prices[each.id]
        assert FLOOR <= price <= each.bid
        rivals = [other for other in lost if other.bid <= each.bid or other.need.gpus <= each.need.gpus]
        assert price == max([FLOOR, *(min(other.bid, each.bid) for other in rivals)])
        higher = [other for other in lost if other.bid > each.bid and other.need.gpus <= each.need.gpus]
        assert not higher or (each.runs and each.is_firm)


@given(BIDDERS, st.integers(0, 4))
@settings(max_examples=100, deadline=None)
def test_result_is_stable_when_losers_stop_and_winners_start(bidders: list[Bidder], free: int) -> None:
    """No thrash: once everyone does what the auction says, the next one says the same."""
    here = room(free)
    found = outcome(here, bidders, Share(), {GPU: FLOOR})
    after = [replace(each, runs=each.id in found.winners, is_firm=False) for each in bidders]
    cards = pool_of(here, bidders).free_gpus[GPU] - sum(each.need.gpus for each in after if each.runs)
    settled = outcome(room(cards), after, Share(), {GPU: FLOOR})
    if not any(each.is_firm for each in bidders):
        assert settled.winners == found.winners
        assert settled.prices == found.prices


@given(BIDDERS, st.integers(0, 4))
@settings(max_examples=100, deadline=None)
def test_those_who_return_fit_into_what_is_free(bidders: list[Bidder], free: int) -> None:
    here = room(free)
    found = outcome(here, bidders, Share(), {GPU: FLOOR})
    back = returning(here, bidders, Share(), found.winners)
    assert sum(each.need.gpus for each in bidders if each.id in back) <= free


def test_tie_goes_to_the_earlier_bid() -> None:
    both = [bidder(1, 20, runs=True), bidder(2, 20)]
    assert outcome(room(0), both, Share(), {GPU: FLOOR}).winners == {"ins_001"}


def test_bid_too_large_for_the_host_does_not_raise_the_price_of_smaller_ones() -> None:
    found = outcome(room(2), [bidder(1, 15), bidder(2, 99, gpus=8)], Share(), {GPU: FLOOR})
    assert found.prices == {"ins_001": FLOOR}


def test_winner_that_is_outbid_but_protected_pays_its_own_bid() -> None:
    found = outcome(room(0), [bidder(1, 15, runs=True, firm=True), bidder(2, 99)], Share(), {GPU: FLOOR})
    assert found.prices == {"ins_001": 15}


def test_launch_on_demand_goes_where_the_lowest_bid_is() -> None:
    rooms = [room(0, "hst_1"), room(0, "hst_2"), room(0, "hst_3")]
    there = {f"hst_{n}": [bidder(n, bid, runs=True)] for n, bid in ((1, 30), (2, 12), (3, 20))}
    demand = Demand(id="que_1", need=need(1), instances=1, terms=PlaceTerms(), since=START)
    found = shares(rooms, there, [demand], {})
    assert [host for host, share in found.items() if share.claims] == ["hst_2"]


def test_two_launches_on_demand_do_not_count_the_same_free_card_twice() -> None:
    there = {"hst_1": [bidder(1, 20, runs=True)]}
    demands = [
        Demand(id=f"que_{n}", need=need(gpus), instances=1, terms=PlaceTerms(), since=START)
        for n, gpus in ((1, 2), (2, 1))
    ]
    found = shares([room(1)], there, demands, {})
    assert [claim.queued_id for claim in found["hst_1"].claims] == ["que_1"]


def test_queued_bid_goes_to_one_host_or_loses_on_all() -> None:
    rooms = [room(0, "hst_1"), room(0, "hst_2")]
    there = {f"hst_{n}": [bidder(n, bid, runs=True)] for n, bid in ((1, 30), (2, 12))}
    for bid, hosts in ((20, ["hst_2"]), (11, ["hst_1", "hst_2"])):
        demand = Demand(id="que_1", need=need(1), instances=1, terms=PlaceTerms(), since=START, bid=bid)
        found = shares(rooms, there, [demand], {})
        assert [host for host, share in found.items() if share.queued] == hosts
