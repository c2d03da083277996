"""One seeded life of a fleet: tenants, operators and failures in any order, then everything comes back."""

from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from random import Random

from tests.simulation.fleet import LIES, LONE, Fleet

from teraflock.drivers.simulated.faults import Kind, SimulatedFault, When
from teraflock.fleet.model import HostState
from teraflock.instance.model import PlaceWish, RestartPolicy
from teraflock.instance.orders import ShapeWish

CARD = ShapeWish(gpu="V100")
MOVES = 20
CALLS = (
    "create",
    "start",
    "expose",
    "hide",
    "stop",
    "delete",
    "sightings",
    "hosts",
    "pack_disk",
    "keep_image",
    "prepare",
)
KINDS = (Kind.KILLED, Kind.FAILED, Kind.ENGINE_DOWN, Kind.BUSY)


def live(seed: int, moves: int = MOVES) -> Counter[str]:
    """Live one life, and check all that must hold. Return what happened in it."""
    there, chance = Fleet(seed), Random(seed)
    try:
        for number in range(moves):
            move(there, chance, number)
            there.check_copies()
        there.settle()
    finally:
        there.database.close()
    return there.count


def move(there: Fleet, chance: Random, number: int) -> None:
    """One thing that happens to the fleet."""
    hosts = sorted(there.all_hosts().values(), key=lambda host: (host.site, host.name))
    host, some = chance.choice(hosts), there.there()
    trouble = there.trouble[host.site]
    acts: dict[str, Callable[[], object]] = {
        "launch": lambda: there.launch(
            chance.randrange(2),
            name=f"n{number}",
            shape=chance.choice([CARD, ShapeWish(), ShapeWish(gpu="V100", gpus=2)]),
            instances=chance.choice([1, 1, 2]),
            restart_policy=chance.choice(list(RestartPolicy)),
            place=PlaceWish(together=chance.random() < 0.3),
            queue=chance.random() < 0.5,
            time_limit_seconds=chance.choice([None, None, 900]),
            host=chance.choice([None, None, host.id]),
        ),
        "away": lambda: trouble.host_goes_away(host.name),
        "back": lambda: trouble.host_comes_back(host.name, rebooted=chance.random() < 0.5),
        "down": trouble.engine_goes_down,
        "up": trouble.engine_comes_back,
        "slow": lambda: there.slow.add(host.site),
        "fast": there.slow.clear,
        "drain": lambda: there.ask(
            lambda: there.hosts_service.set_state(
                there.actor, host.id, HostState.DRAINING,
                drain_at=there.clock.now() + timedelta(seconds=chance.choice([0, 60])),
            )
        ),
        "ready": lambda: there.ask(lambda: there.hosts_service.set_state(there.actor, host.id, HostState.READY)),
        "clock": lambda: there.wait(chance.choice([-20, -2, 2, 20, 300])),
        "die": lambda: setattr(there.database, "dies_in", chance.randrange(1, 15)),
        "boot": there.boot,
        "remove": there.remove_lost,
        "claim": lambda: there.claims[host.site].update({host.name: chance.choice(LIES)}),
        "truth": lambda: there.claims[host.site].clear(),
        "fault": lambda: trouble.faults(
            SimulatedFault(
                call=chance.choice(CALLS), when=chance.choice(list(When)), kind=chance.choice(KINDS),
                times=chance.choice([1, 1, 5]),
            )
        ),
        "join": lambda: there.ask(lambda: there.join(LONE)),
    }  # fmt: skip
    if some:
        one = chance.choice(some)
        project = next(each for each in there.projects if each.id == one.project_id)
        act = chance.choice(["stop", "start", "delete"])
        acts["act"] = lambda: there.ask(lambda: getattr(there.service, act)(there.actor, project, one.id))
        acts["lie"] = lambda: there.lie(host.site, host.name, one.id)
    names = ["launch"] * 4 + ["away"] * 3 + ["back"] * 4 + list(acts)
    what = chance.choice(names)
    acts[what]()
    there.count[what] += 1
    there.pass_time(chance.choice([5, 10, 30, 60, 330]))
