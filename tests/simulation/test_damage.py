"""The simulation detects a meter, billing or a budget that is wrong in a known way."""

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace
from tests.simulation.checks import check
from tests.simulation.cloud import DAY_S, Cloud
from tests.simulation.intake import installed
from tests.simulation.moves import HOST_NAMES
from tests.simulation.walk import begin, walk

from teraflock.base.clock import DAY_US
from teraflock.bill import biller, costs, desk
from teraflock.bill.budget import service as budgets
from teraflock.bill.charge import rules as charging
from teraflock.bill.charge import traffic as sending
from teraflock.bill.margin import rules as margins
from teraflock.bill.price import model as prices
from teraflock.bill.purchase import rules as buying
from teraflock.bill.purchase import service as purchases
from teraflock.drivers.simulated.faults import FOREVER, Kind, SimulatedFault
from teraflock.fleet import store as fleet
from teraflock.instance.orders import ShapeWish
from teraflock.instance.states import Phase
from teraflock.meter import rules as metering
from teraflock.meter import service as meter
from teraflock.meter import store as meter_store
from teraflock.reconcile import bills as loop
from teraflock.reconcile import hosts

MOVES = 50
Damage = Callable[[pytest.MonkeyPatch], None]


def altered(module: Any, name: str, change: Callable[[Callable[..., Any]], Callable[..., Any]]) -> Damage:
    return lambda patch: patch.setattr(module, name, change(getattr(module, name)))


def no_wish_counts(plain: Callable[..., Any]) -> Callable[..., Any]:
    return lambda meter, change: plain(meter, replace(change, asked_at_us=None))


def no_loss_counts(plain: Callable[..., Any]) -> Callable[..., Any]:
    return lambda meter, change: plain(meter, replace(change, last_seen_us=None))


def starting_is_charged(plain: Callable[..., Any]) -> Callable[..., Any]:
    return lambda change: change.held if change.phase == "starting" else plain(change)


def disk_is_free(plain: Callable[..., Any]) -> Callable[..., Any]:
    return lambda change: None if change.phase == "stopped" else plain(change)


def a_micro_more(plain: Callable[..., Any]) -> Callable[..., Any]:
    return lambda exact: (plain(exact)[0] + (exact[0] > 0), *plain(exact)[1:])


def nothing_is_taken_back(plain: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *args, **more: [each for each in plain(*args, **more) if each.kind != "reversal"]


def everybody_seen(plain: Callable[..., Any]) -> Callable[..., Any]:
    return lambda tx, site, names, now, all_of_site: plain(tx, site, names, now, all_of_site=True)


def never_stops(plain: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *args, **more: replace(plain(*args, **more), stops=False)


def blind_to_what_is_not_booked(plain: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *args, **more: costs.Spent(
        micros=0, committed_micros=0, micros_per_hour=plain(*args, **more).micros_per_hour
    )


def work_is_not_lost(plain: Callable[..., Any]) -> Callable[..., Any]:
    return lambda instance: plain(instance) if instance.settled else instance


def the_same_everywhere(plain: Callable[..., Any]) -> Callable[..., Any]:
    return lambda period, gpu, mode, host, region: plain(period, gpu, mode, host, "")


def a_byte_more(plain: Callable[..., Any]) -> Callable[..., Any]:
    return lambda from_us, until_us, sent, *more: plain(from_us, until_us, sent + (1 << 30), *more)


def halved(plain: Callable[..., Any]) -> Callable[..., Any]:
    return lambda whole, held: [share / 2 for share in plain(whole, held)]


def fee_times(factor: int) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def change(plain: Callable[..., Any]) -> Callable[..., Any]:
        def altered_term(*args: Any) -> Any:
            term = plain(*args)
            return replace(term, fee_micros=term.fee_micros * factor)

        return altered_term

    return change


def late_is_forgotten(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(meter_store, "instances_behind", lambda tx: [])
    patch.setattr(meter_store, "instances_missed", lambda tx: [])
    patch.setattr(meter_store, "ids_between", lambda *args: [])


DAMAGE: dict[str, Damage] = {
    "work on a lost host is charged": altered(hosts, "lost", work_is_not_lost),
    "a region has no prices": altered(prices.PricedPeriod, "_worked_out", the_same_everywhere),
    "a GB more was sent": altered(sending, "_slice", a_byte_more),
    "twice as much is given back": altered(purchases, "ended", fee_times(2)),
    "to grow is free": altered(purchases, "upgraded", fee_times(0)),
    "what is late is forgotten": late_is_forgotten,
    "a stop counts when it is reached": altered(metering, "effect_us", no_wish_counts),
    "a lost host is charged until it is missed": altered(metering, "effect_us", no_loss_counts),
    "starting is charged": altered(metering, "charged", starting_is_charged),
    "a stopped disk is free": altered(metering, "charged", disk_is_free),
    "a run that ended before is not cut back": altered(
        meter, "recut", lambda plain: lambda *args, **more: ()
    ),
    "a millionth more": altered(charging, "_floored", a_micro_more),
    "no minimum": altered(charging, "minimum_micros", lambda plain: lambda *args: 0),
    "no discount": altered(charging, "discount_at", lambda plain: lambda *args: 0),
    "what is bought is charged again": altered(charging, "cover_at", lambda plain: lambda *args: None),
    "nothing is taken back": altered(desk, "booking", nothing_is_taken_back),
    "a month is dearer": altered(buying, "month_micros", lambda plain: lambda *a, **m: plain(*a, **m) + 1),
    "a day is not closed whole": lambda patch: patch.setattr(biller, "DAY_US", DAY_US - 1),
    "all hosts count as seen": altered(fleet, "mark_seen", everybody_seen),
    "a budget never stops": altered(budgets, "decide", never_stops),
    "a budget is blind": altered(costs, "not_booked", blind_to_what_is_not_booked),
    "an instance has half of its share": altered(margins, "shares", halved),
    "who starts uses nothing": lambda patch: patch.setattr(
        margins, "USES_NOTHING", margins.USES_NOTHING | {Phase.STARTING}
    ),
    "a host costs twice": altered(margins, "_accrued", lambda plain: lambda *args: 2 * plain(*args)),
    "nobody is asked to stop": lambda patch: patch.setattr(loop, "PAGE", 0),
}


def grown(cloud: Cloud) -> None:
    """Buy a month, resize its instance, and end it early."""
    _launch(cloud)
    cloud.buy(cloud.instances_there()[0], reserved=False, upfront=False)
    cloud.resize(cloud.instances_there()[0], ShapeWish(vcpus=20))
    _work(cloud)
    cloud.pass_time(DAY_S)
    cloud.change_purchase(0, "upgrade")
    cloud.pass_time(DAY_S)
    cloud.change_purchase(0, "end")
    check(cloud)


def moved_north(cloud: Cloud) -> None:
    _launch(cloud)
    for host in HOST_NAMES:
        cloud.move_host(host, "north")
    cloud.pass_time(DAY_S)
    check(cloud)


def stopped_in_a_change(cloud: Cloud) -> None:
    """Stop while cards are being released, which completes later."""
    _launch(cloud, gpus=2)
    cloud.trouble.faults(SimulatedFault(call="ready", kind=Kind.BUSY, times=FOREVER))
    cloud.resize(cloud.instances_there()[0], ShapeWish(gpus=1))
    _work(cloud)
    cloud.act("stop", cloud.instances_there()[0])
    cloud.wait(600)
    cloud.trouble.no_more_faults()
    _work(cloud)
    check(cloud)


def lost_in_a_change(cloud: Cloud) -> None:
    _launch(cloud)
    one = cloud.instances_there()[0]
    cloud.trouble.faults(SimulatedFault(call="snapshot", kind=Kind.BUSY, times=FOREVER))
    cloud.snapshot(one)
    _work(cloud)
    cloud.trouble.host_goes_away(cloud.host_of(one))
    cloud.pass_time(DAY_S)
    check(cloud)


def _launch(cloud: Cloud, gpus: int = 1) -> None:
    begin(cloud)
    cloud.intake.late_percent = 0
    cloud.launch("default", ShapeWish(gpu="V100", gpus=gpus), 1, "on-demand", "a", 0)
    _work(cloud)
    assert cloud.instances_there()[0].phase == "running"


def _work(cloud: Cloud) -> None:
    for _ in range(4):
        cloud.wait(1)
        cloud.turn()


def walked(seed: int) -> Callable[[Cloud], None]:
    return lambda cloud: walk(cloud, seed, MOVES)


SCENES: dict[str, Callable[[Cloud], None]] = {
    "work on a lost host is charged": lost_in_a_change,
    "a region has no prices": moved_north,
    "twice as much is given back": grown,
    "to grow is free": grown,
    "a run that ended before is not cut back": stopped_in_a_change,
}
"""Scenes for damage that random runs rarely reach. All other damage must be detected in one of the walks."""
SEEDS = (1, 2, 3, 4, 5, 6)


def caught(patch: pytest.MonkeyPatch, live: Callable[[Cloud], None], seed: int) -> bool:
    with patch.context() as patches:
        cloud = Cloud(seed=seed)
        installed(patches, lambda: cloud.intake)
        try:
            live(cloud)
        except AssertionError:
            return True
        finally:
            cloud.database.close()
    return False


WALKED = pytest.mark.long("up to six walks, seconds each")


@pytest.mark.parametrize(
    "what", [what if what in SCENES else pytest.param(what, marks=WALKED) for what in DAMAGE]
)
def test_damage_is_detected(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    lives = {0: SCENES[what]} if what in SCENES else {seed: walked(seed) for seed in SEEDS}
    DAMAGE[what](monkeypatch)
    assert any(caught(monkeypatch, live, seed) for seed, live in lives.items())


@WALKED
@pytest.mark.parametrize("seed", SEEDS)
def test_the_same_walk_undamaged_finds_nothing(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not caught(monkeypatch, walked(seed), seed)


@pytest.mark.parametrize("what", SCENES)
def test_the_same_scene_undamaged_finds_nothing(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not caught(monkeypatch, SCENES[what], 0)
