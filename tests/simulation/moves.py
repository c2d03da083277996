"""Everything that can happen to an installation, one function each: tenants, operators, the clock, the
engine, failures."""

from collections.abc import Callable
from datetime import timedelta
from random import Random

from tests.simulation.cloud import DAY_S, PROJECTS, Cloud

from teraflock.drivers.simulated.faults import FOREVER, Kind, SimulatedFault, When
from teraflock.drivers.simulated.model import Guest
from teraflock.instance.model import Instance, RestartPolicy
from teraflock.instance.orders import ShapeWish

Move = Callable[[Cloud, Random], None]
SHAPES = (
    ShapeWish(gpu="V100"), ShapeWish(gpu="V100", gpus=2), ShapeWish(gpu="A100-80"),
    ShapeWish(vcpus=2, ram_bytes=3 << 30),
    ShapeWish(gpu="V100", vcpus=3, ram_bytes=(7 << 30) + 12345, disk_bytes=(40 << 30) + 1),
)  # fmt: skip
SIZES = (
    ShapeWish(gpus=1), ShapeWish(gpus=2), ShapeWish(gpus=0), ShapeWish(vcpus=5), ShapeWish(ram_bytes=9 << 30),
    ShapeWish(disk_bytes=300 << 30), ShapeWish(vcpus=1, ram_bytes=1 << 30),
)  # fmt: skip
CALLS = ("create", "start", "ready", "stop", "delete", "resize", "snapshot", "sightings", "hosts", "*")
KINDS = (Kind.ENGINE_DOWN, Kind.BUSY, Kind.REFUSED, Kind.DOES_NOT_BOOT, Kind.KILLED)
HOST_NAMES = tuple(f"simulated-{number:04d}" for number in range(1, 5))


def launch(cloud: Cloud, chance: Random) -> None:
    mode = chance.choice(["on-demand", "on-demand", "spot"])
    cloud.launch(chance.choice(PROJECTS), chance.choice(SHAPES), chance.choice([1, 1, 2]), mode,
                 chance.choice("ab"), chance.randrange(2),
                 chance.choice([None, None, None, 1800, 3 * DAY_S]))  # fmt: skip
    work(cloud, chance)


def act(cloud: Cloud, chance: Random) -> None:
    if one := _one(cloud, chance):
        cloud.act(chance.choice(["stop", "stop", "start", "start", "restart", "restart", "delete"]), one)


def resize(cloud: Cloud, chance: Random) -> None:
    if one := _one(cloud, chance):
        cloud.resize(one, chance.choice(SIZES))


def label(cloud: Cloud, chance: Random) -> None:
    if one := _one(cloud, chance, "running"):
        cloud.label(one, chance.choice(["a", "b", None]))


def snapshot(cloud: Cloud, chance: Random) -> None:
    if one := _one(cloud, chance):
        cloud.snapshot(one)


def send(cloud: Cloud, chance: Random) -> None:
    if one := _one(cloud, chance, "running"):
        cloud.send(one, chance.choice([chance.randrange(1 << 20), chance.randrange(1 << 31), 5 << 30]))


def move_host(cloud: Cloud, chance: Random) -> None:
    cloud.move_host(chance.choice(HOST_NAMES), chance.choice(["home", "north"]))


def work(cloud: Cloud, chance: Random) -> None:
    for _ in range(chance.choice([1, 2, 4])):
        cloud.wait(chance.choice([0.3, 1, 2.5]))
        cloud.turn()


def pass_time(cloud: Cloud, chance: Random) -> None:
    most = chance.choice([60, 3600, DAY_S, 6 * DAY_S, 6 * DAY_S, 33 * DAY_S])
    cloud.pass_time(chance.uniform(0, most))


def step_clock(cloud: Cloud, chance: Random) -> None:
    """Set the clock forward or back at once, without a turn of any loop."""
    cloud.watch.forget()
    cloud.count["clock steps"] += 1
    cloud.wait(chance.choice([-1, 1]) * chance.choice([0.5, 40, 7200 * chance.random()]))


def outage(cloud: Cloud, chance: Random) -> None:
    """The server is down while guests keep running."""
    cloud.wait(chance.uniform(1, 20_000))
    cloud.boot()
    cloud.count["kills"] += 1


def power_cut(cloud: Cloud, chance: Random) -> None:
    """Server and guests go down together, on some hosts or on all. Only the server comes back by itself."""
    chosen = HOST_NAMES if chance.random() < 0.5 else chance.sample(HOST_NAMES, 2)
    for host in chosen:
        cloud.trouble.host_comes_back(host, rebooted=True)
    cloud.wait(chance.choice([0.5, 4, 600, DAY_S, 3 * DAY_S]) * chance.random())
    cloud.boot()
    cloud.count["power cuts"] += 1
    if chance.random() < 0.3:  # the engine is slower than the server
        cloud.trouble.engine_goes_down()
        work(cloud, chance)
        cloud.trouble.engine_comes_back()


def set_prices(cloud: Cloud, chance: Random) -> None:
    cloud.set_prices(
        chance.randrange(10**7), chance.randrange(10**5), chance.choice([0, 60, 900]), chance.randrange(90)
    )


def buy(cloud: Cloud, chance: Random) -> None:
    if one := _one(cloud, chance, "running"):
        cloud.buy(one, reserved=chance.random() < 0.4, upfront=chance.random() < 0.5)


def months(cloud: Cloud, chance: Random) -> None:
    """Buy something and let months pass: it is renewed if there is money."""
    launch(cloud, chance)
    for _ in range(3):
        buy(cloud, chance)
    if one := _one(cloud, chance, "running"):
        cloud.resize(one, ShapeWish(vcpus=17 + chance.randrange(9)))
        work(cloud, chance)
    for pick in range(chance.randrange(4)):
        cloud.change_purchase(pick, "upgrade")
    cloud.pass_time(chance.uniform(20, 75) * DAY_S)


def change_purchase(cloud: Cloud, chance: Random) -> None:
    cloud.change_purchase(chance.randrange(9), chance.choice(["end", "upgrade"]))


def set_budget(cloud: Cloud, chance: Random) -> None:
    project = chance.choice(PROJECTS)
    spent = cloud.spent(project)
    micros = chance.choice([spent // 2, spent + chance.randrange(10**7), spent + chance.randrange(10**9)])
    cloud.set_budget(project, micros, chance.random() < 0.8, chance.choice([0, 60, 3600]))


def remove_budget(cloud: Cloud, chance: Random) -> None:
    project = chance.choice(PROJECTS)
    cloud.ask(lambda: cloud.bills.budgets.remove(cloud.id(project)))
    cloud.watch.forget(project)


def give(cloud: Cloud, chance: Random) -> None:
    micros = chance.randrange(1, 10**9)
    if chance.random() < 0.6:
        cloud.pay("ahead", micros)
    else:
        cloud.give(chance.choice(PROJECTS), micros)


def die_soon(cloud: Cloud, chance: Random) -> None:
    cloud.database.dies_in = chance.randrange(1, 12)
    cloud.database.dies_after_commit = chance.random() < 0.5


def fault(cloud: Cloud, chance: Random) -> None:
    if chance.random() < 0.5:
        cloud.trouble.no_more_faults()
    call, kind = chance.choice(CALLS), chance.choice(KINDS)
    cloud.trouble.faults(
        SimulatedFault(call=call, when=chance.choice(list(When)), kind=kind, times=chance.randrange(1, 4))
    )


def hang(cloud: Cloud, chance: Random) -> None:
    """Request something that the engine does not finish, then send more requests and let time pass."""
    call, kind = (
        chance.choice(["stop", "start", "ready", "snapshot", "resize", "delete"]),
        chance.choice(KINDS[:2]),
    )
    cloud.trouble.faults(SimulatedFault(call=call, kind=kind, times=FOREVER))
    for move in chance.choices(
        (act, resize, snapshot, work, wait_a_little, trouble_host), k=chance.randrange(3, 9)
    ):
        move(cloud, chance)
    cloud.trouble.no_more_faults()
    if chance.random() < 0.3:
        cloud.trouble.faults(SimulatedFault(call=call, kind=Kind.REFUSED))
    work(cloud, chance)
    cloud.count["hangs"] += 1


def wait_a_little(cloud: Cloud, chance: Random) -> None:
    cloud.pass_time(chance.uniform(1, chance.choice([4_000, 4_000, 2 * DAY_S])))


def trouble_host(cloud: Cloud, chance: Random) -> None:
    host = chance.choice(HOST_NAMES)
    if chance.random() < 0.5:
        cloud.trouble.host_goes_away(host)
        cloud.count["hosts lost"] += 1
    else:
        cloud.trouble.host_comes_back(host, rebooted=chance.random() < 0.5)
    work(cloud, chance)


def lose_in_work(cloud: Cloud, chance: Random) -> None:
    """Lose a host during an operation that does not end. Time passes, and the host returns or not."""
    one = _one(cloud, chance, "running")
    if one is None:
        return
    wish, call = chance.choice(
        [("snapshot", "snapshot"), ("resize", "resize"), ("restart", "ready"), ("cards", "ready")]
    )
    cloud.trouble.faults(SimulatedFault(call=call, kind=Kind.BUSY, times=FOREVER))
    if wish == "snapshot":
        cloud.snapshot(one)
    elif wish == "restart":
        cloud.act("restart", one)
    else:
        cloud.resize(one, ShapeWish(gpus=2) if wish == "cards" else ShapeWish(vcpus=chance.randrange(1, 9)))
    work(cloud, chance)
    if host := cloud.host_of(one):
        cloud.trouble.host_goes_away(host)
        cloud.count["hosts lost"] += 1
    for move in chance.choices((work, wait_a_little, act), k=chance.randrange(1, 5)):
        move(cloud, chance)
    cloud.trouble.no_more_faults()
    if host and chance.random() < 0.7:
        cloud.trouble.host_comes_back(host, rebooted=chance.random() < 0.5)
    work(cloud, chance)


def meddle(cloud: Cloud, chance: Random) -> None:
    with cloud.world.read() as turn:
        ids = [guest.key for guest in turn.every(Guest)]
    if ids:
        getattr(cloud.trouble, chance.choice(["stopped_by_hand", "deleted_by_hand", "dies"]))(
            chance.choice(ids)
        )


def delay_events(cloud: Cloud, chance: Random) -> None:
    cloud.intake.late_percent = chance.choice([0, 20, 60])
    cloud.intake.twice_percent = chance.choice([0, 20, 50])


def deliver_events(cloud: Cloud, chance: Random) -> None:
    cloud.intake.arrive()


def rent(cloud: Cloud, chance: Random) -> None:
    cloud.rent(chance.choice(PROJECTS), chance.choice(["on-demand", "spot", "bid"]),
               chance.choice([None, *RestartPolicy]), chance.choice([None, None, 1800]))  # fmt: skip
    for _ in range(chance.choice([2, 8])):
        work(cloud, chance)


def trouble_sky(cloud: Cloud, chance: Random) -> None:
    """Failures of clouds: for a while, or until something else happens."""
    sky, now = cloud.sky_trouble, cloud.clock.now()
    kinds = (Kind.ENGINE_DOWN, Kind.BUSY, Kind.NO_ROOM, Kind.OVER_QUOTA, Kind.LATER, Kind.KILLED)
    chance.choice([
        lambda: sky.locked_out(),
        lambda: sky.engine_goes_down(),
        lambda: sky.sold_out(*chance.sample(["north", "home"], chance.randrange(3))),
        lambda: sky.quota(chance.choice([0, 1, 3])),
        lambda: sky.runs_out_of_money(),
        lambda: sky.price_changes("gpu", chance.choice(["north", "home"]), chance.choice(["spot", "bid", "on-demand"]),
                                  chance.randrange(10**6), now),
        lambda: sky.faults(SimulatedFault(call=chance.choice(["create", "ready", "delete", "sightings", "*"]),
                                 when=chance.choice(list(When)), kind=chance.choice(kinds))),
        sky.all_is_well,
        sky.all_is_well,
    ])()  # fmt: skip
    cloud.count["trouble in the sky"] += 1
    chance.choice([work, wait_a_little])(cloud, chance)
    if chance.random() < 0.7:
        sky.all_is_well()


def interrupt(cloud: Cloud, chance: Random) -> None:
    """A rented machine is reclaimed, with or without notice, or stops."""
    with cloud.sky_world.read() as turn:
        ids = [guest.machine.handle.instance_id for guest in turn.every(Guest)]
    if not ids:
        return
    one = chance.choice(ids)
    if chance.random() < 0.3:
        cloud.sky_trouble.stopped_by_hand(one)
    else:
        at = cloud.clock.now() + timedelta(seconds=chance.choice([0, 0, 30, 120]))
        cloud.sky_trouble.taken_back(one, at)
    cloud.count["interruptions"] += 1
    for _ in range(chance.choice([1, 30])):
        work(cloud, chance)


def _one(cloud: Cloud, chance: Random, phase: str = "") -> Instance | None:
    """Return any instance, preferably one in this phase."""
    found = cloud.instances_there()
    found = [each for each in found if each.phase == phase] or found
    return chance.choice(found) if found else None


WEIGHTS: dict[Move, int] = {
    launch: 6, act: 8, resize: 4, snapshot: 2, hang: 4, work: 5, pass_time: 6, step_clock: 1, outage: 1, set_prices: 1,
    power_cut: 2, buy: 3, months: 1, change_purchase: 2, set_budget: 2, remove_budget: 1, give: 2, die_soon: 2,
    fault: 2,
    rent: 4, trouble_sky: 3, interrupt: 3,
    trouble_host: 2, lose_in_work: 2, meddle: 1, delay_events: 1, deliver_events: 1, send: 3, move_host: 1, label: 3,
}  # fmt: skip
MOVES: tuple[Move, ...] = tuple(move for move, weight in WEIGHTS.items() for _ in range(weight))
