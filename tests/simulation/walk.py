"""A seeded walk: a number of moves, checked on the way and at the end."""

from collections.abc import Callable
from random import Random

from tests.simulation.checks import balance, check, check_while_late
from tests.simulation.cloud import Cloud
from tests.simulation.moves import MOVES

from teraflock.fleet import store as fleet

CHECK_EVERY = 25


def checks(moves: int) -> Callable[[Cloud], None]:
    """Return which check is due: every second one keeps late events late."""
    return check if moves // CHECK_EVERY % 2 == 0 else check_while_late


def begin(cloud: Cloud) -> None:
    cloud.set_prices(3_060_000, 12_300, 60, 10)
    cloud.pay("ahead", 10**9)
    with cloud.database.read() as tx:
        hosts = fleet.hosts(tx, limit=99)
    for number, host in enumerate(hosts):
        cloud.bills.host_costs.set(host, 1_234_567 + number, "USD")


def walk(cloud: Cloud, seed: int, moves: int) -> None:
    chance = Random(seed)
    begin(cloud)
    for number in range(1, moves + 1):
        chance.choice(MOVES)(cloud, chance)
        cloud.count["moves"] += 1
        balance(cloud)
        if number % CHECK_EVERY == 0:
            checks(number)(cloud)
    check(cloud)
