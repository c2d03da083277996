"""The simulation sees what it is there for: a meter, a biller or a budget that is wrong in a known way is caught."""

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace
from tests.simulation.cloud import Cloud
from tests.simulation.intake import Intake, installed
from tests.simulation.walk import walk

from teraflock.bill import biller, costs, desk
from teraflock.bill.budget import service as budgets
from teraflock.bill.charge import rules as charging
from teraflock.bill.purchase import rules as buying
from teraflock.fleet import store as fleet
from teraflock.meter import rules as metering
from teraflock.meter import service as meter
from teraflock.reconcile import bills as loop

WALKS = 12
MOVES = 75
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


DAMAGE: dict[str, Damage] = {
    "a stop counts when it is reached": altered(metering, "effect_us", no_wish_counts),
    "a lost host is charged until it is missed": altered(metering, "effect_us", no_loss_counts),
    "starting is charged": altered(metering, "charged", starting_is_charged),
    "a stopped disk is free": altered(metering, "charged", disk_is_free),
    "a run that ended before is not cut back": altered(
        meter, "recut", lambda plain: lambda *args, **more: ()
    ),
    "a millionth more": altered(charging, "_floored", a_micro_more),
    "no minimum": altered(charging, "_minimum_micros", lambda plain: lambda *args: 0),
    "no discount": altered(charging, "discount_at", lambda plain: lambda *args: 0),
    "what is bought is charged again": altered(charging, "cover_at", lambda plain: lambda *args: None),
    "nothing is taken back": altered(desk, "booking", nothing_is_taken_back),
    "a month is dearer": altered(buying, "month_micros", lambda plain: lambda *a, **m: plain(*a, **m) + 1),
    "a day is not closed whole": lambda patch: patch.setattr(biller, "DAY_US", charging.DAY_US - 1),
    "all hosts count as seen": altered(fleet, "mark_seen", everybody_seen),
    "a budget never stops": altered(budgets, "decide", never_stops),
    "a budget is blind": altered(costs, "not_booked", blind_to_what_is_not_booked),
    "nobody is asked to stop": lambda patch: patch.setattr(loop, "PAGE", 0),
}


def walks(current: list[Intake]) -> None:
    for seed in range(WALKS):
        cloud = Cloud(seed=seed)
        current[0] = cloud.intake
        walk(cloud, seed, MOVES)


@pytest.mark.parametrize("what", DAMAGE)
def test_damage_is_caught(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    current = [Intake()]
    installed(monkeypatch, lambda: current[0])
    DAMAGE[what](monkeypatch)
    with pytest.raises(AssertionError):
        walks(current)


def test_the_same_walks_undamaged_find_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    current = [Intake()]
    installed(monkeypatch, lambda: current[0])
    walks(current)
