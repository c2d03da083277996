"""A seeded walk: so many moves, checked on the way and at the end."""

from random import Random

from tests.simulation.checks import balance, check
from tests.simulation.cloud import Cloud
from tests.simulation.moves import MOVES

CHECK_EVERY = 25


def begin(cloud: Cloud) -> None:
    cloud.set_prices(3_060_000, 12_300, 60, 10)
    cloud.bills.invoices.pay_in(cloud.id("ahead"), 10**9)


def walk(cloud: Cloud, seed: int, moves: int) -> None:
    chance = Random(seed)
    begin(cloud)
    for number in range(1, moves + 1):
        chance.choice(MOVES)(cloud, chance)
        cloud.count["moves"] += 1
        balance(cloud)
        if number % CHECK_EVERY == 0:
            check(cloud)
    check(cloud)
