"""Several sites with several hosts in one process, to lose hosts in every way: partitions, slow and lying hosts, clocks
that jump, and a server that dies. Nothing runs by itself: `turn` is one turn of every loop.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from random import Random

import msgspec
from tests.simulation import price_book
from tests.simulation.crashing_database import CrashingDatabase
from tests.simulation.process import MortalProcess
from tests.unit.bill.world import RATES, START

from teraflock.app.joining.listener import JoinPort
from teraflock.app.settings import Settings
from teraflock.base.clock import FixedClock
from teraflock.bill.service import BillService
from teraflock.bill.verify.service import verify
from teraflock.drivers.simulated.engine import SimulatedEngine
from teraflock.drivers.simulated.fleet import fleet
from teraflock.drivers.simulated.model import Guest, Weather
from teraflock.drivers.simulated.trouble import Trouble
from teraflock.drivers.simulated.world import MemoryWorld, weather
from teraflock.fleet import store as hosts
from teraflock.fleet.model import Host, HostReport
from teraflock.fleet.service import FleetService
from teraflock.image.service import ImageService
from teraflock.instance.copy import store as disk_copies
from teraflock.instance.copy.model import DiskCopy
from teraflock.instance.copy.states import CopyState
from teraflock.instance.engines import Engines
from teraflock.instance.join import store as joined_hosts
from teraflock.instance.join.model import JoinedHost, Package
from teraflock.instance.join.service import JoinService
from teraflock.instance.model import Instance
from teraflock.instance.orders import Order
from teraflock.instance.service import InstanceService
from teraflock.instance.site import store as site_records
from teraflock.instance.site.model import SiteRecord
from teraflock.instance.states import Phase
from teraflock.reconcile.bills import BillLoop, stopper
from teraflock.reconcile.copying import CopyLoop
from teraflock.reconcile.draining import DrainLoop
from teraflock.reconcile.images import ImageLoop
from teraflock.reconcile.loops import HOSTS_SECONDS
from teraflock.reconcile.moving import MoveLoop
from teraflock.reconcile.queue import QueueLoop
from teraflock.reconcile.time_limits import TimeLimitLoop
from teraflock.storage.database import Transaction
from teraflock.storage.memory import MemoryDatabase
from teraflock.storage.migrate import migrate
from teraflock.tenant.service import TenantService

RARE = 4
"""Some loops have a turn only so often, as in a server."""
BUSY_TURNS = 8
SLOW_SECONDS = 15.0
"""Less than `UNWATCHED`: hosts still count as watched."""
COPY_EVERY = timedelta(minutes=2)
LONE = "lone"
"""A site with one host, which joined and can be removed."""
SITES = {"east": "3x2xV100", "west": "2x2xV100,1x0", LONE: "1x2xV100"}
NO_DOOR = JoinPort(lambda label: b"", Settings())
"""No host joins over a connection here."""


LIES: tuple[Callable[[HostReport], HostReport], ...] = (
    lambda true: msgspec.structs.replace(true, gpus=true.gpus[:-1]),
    lambda true: msgspec.structs.replace(
        true, gpus=tuple(msgspec.structs.replace(card, healthy=False) for card in true.gpus)
    ),
    lambda true: msgspec.structs.replace(
        true, gpus=tuple(msgspec.structs.replace(card, slot=f"{card.slot}0") for card in true.gpus)
    ),
    lambda true: msgspec.structs.replace(true, ram_bytes=true.ram_bytes // 8, vcpus=1, disk_bytes=0),
    lambda true: msgspec.structs.replace(true, ram_bytes=1 << 59, vcpus=1 << 19, disk_bytes=1 << 59),
    lambda true: msgspec.structs.replace(true, vcpus=1 << 63),
)
"""What a host may report instead of the truth: fewer, broken or other cards, less or far more room, and nonsense."""


class LyingEngine(SimulatedEngine):
    claims: dict[str, Callable[[HostReport], HostReport]]
    """What hosts make of their reports, by name."""

    def hosts(self) -> Sequence[HostReport]:
        claims, found = self.claims, super().hosts()
        return [claims[true.name](true) if true.name in claims else true for true in found]


class Fleet(MortalProcess):
    def __init__(self, seed: int = 0, sites: dict[str, str] | None = None) -> None:
        self.clock = FixedClock(START)
        self.random_bytes = Random(seed).randbytes
        self.sites = sites or SITES
        self.worlds = {site: MemoryWorld() for site in self.sites}
        self.trouble = {site: Trouble(world) for site, world in self.worlds.items()}
        self.slow: set[str] = set()
        """Sites whose readings hang."""
        self.lies: set[tuple[str, str]] = set()
        """Copies that a lying host made, by instance and host."""
        self.claims: dict[str, dict[str, Callable[[HostReport], HostReport]]] = {
            site: {} for site in self.sites
        }
        """What hosts claim about themselves, by site and host."""
        self.count: Counter[str] = Counter()
        inner = MemoryDatabase()
        migrate(inner, self.clock)
        self.database = CrashingDatabase(inner, lambda *_: None, lambda *_: None)
        tenants = TenantService(self.database, self.clock, self.random_bytes)
        self.mark = tenants.install().installation_id
        self.actor = tenants.authenticate(tenants.operator_key().secret)
        tenants.projects.make(self.actor, "other")
        self.projects = [tenants.projects.show(self.actor, name) for name in ("default", "other")]
        self.join(LONE)
        self.boot()
        text = price_book.text(3_060_000, 12_300, 0, 10)
        self.bills.prices.take(text, name="book", member="mem_1")
        images = ImageService(
            self.database, self.clock, publish=self.service.publish, random_bytes=self.random_bytes
        )
        images.build(self.actor, self.projects[0], "base", "base")
        self.pass_time(20)

    def boot(self) -> None:
        """Start a new process on the same database and worlds."""
        self.database.live()
        drivers = [
            LyingEngine(
                world, self.clock, fleet(self.sites[site]), site=site, mark=self.mark, boot_seconds=0.4
            )
            for site, world in self.worlds.items()
        ]
        for each in drivers:
            each.claims = self.claims[each.site]
        self.engines = Engines(drivers)
        at = (self.database, self.clock)
        self.service = InstanceService(*at, self.engines, random_bytes=self.random_bytes)
        self.hosts_service = FleetService(*at, random_bytes=self.random_bytes)
        self.joins = JoinService(
            *at, self.engines, NO_DOOR, version="1", mark=self.mark, package=_no_package, random_bytes=self.random_bytes
        )  # fmt: skip
        self.bills = BillService(*at, RATES, self.random_bytes, stopper(self.database, self.service))
        around = self.hire(self.engines, self.random_bytes(4).hex())
        self.moves = MoveLoop(around)
        self.turns = [
            ImageLoop(around).turn,
            self.moves.turn,
            DrainLoop(around).turn,
            TimeLimitLoop(around).turn,
            QueueLoop(around, self.service.queue).turn,
        ]
        self.copying = CopyLoop(around, COPY_EVERY)
        self.rare_turns = [self._copy, BillLoop(self.bills, self.clock).turn]

    def turn(self) -> None:
        self.count["turns"] += 1
        rare = () if self.count["turns"] % RARE else self.rare_turns
        for act in (self.beat, self._read_hosts, self._check, *self.turns, *rare, self.serve):
            if not self.survives(act):
                return

    def _read_hosts(self) -> None:
        self.hosts.count_turn()
        for driver in self.engines:
            if driver.site in self.slow:
                self.hosts.asking.setdefault(driver.site, self.clock.now())
            else:
                self.hosts.turn_of(driver)
        self.hosts.give_up_overdue()

    def _check(self) -> None:
        for driver in self.engines:
            if driver.site not in self.slow:
                self.drift.turn_of(driver)

    def _copy(self) -> None:
        if not self.slow:  # otherwise the loop hangs as well
            self.copying.turn()

    def pass_time(self, seconds: float) -> None:
        """Turns at the pace of a server. After a while, when little changes any more, at a slower one."""
        until, turns = self.clock.now() + timedelta(seconds=max(seconds, HOSTS_SECONDS)), 0
        while self.clock.now() < until:
            pause = HOSTS_SECONDS if turns < BUSY_TURNS else SLOW_SECONDS
            self.wait(min(pause, max(HOSTS_SECONDS, (until - self.clock.now()).total_seconds())))
            self.turn()
            self.check_copies()
            turns += 1

    # what is there

    def launch(self, project: int = 0, **order: object) -> None:
        wanted = Order(**order)  # type: ignore[arg-type]
        self.ask(lambda: self.service.launch_or_queue(self.actor, self.projects[project], wanted))

    def there(self) -> list[Instance]:
        return [
            view.instance for project in self.projects for view in self.service.page(project.id, limit=200)
        ]

    def one(self, name: str) -> Instance:
        return next(each for each in self.there() if each.name == name)

    def all_hosts(self) -> dict[str, Host]:
        with self.database.read() as tx:
            return {str(host.id): host for host in hosts.hosts(tx, limit=100)}

    def guests(self) -> list[tuple[str, Guest]]:
        """All guests of all worlds with their sites, including those of hosts that do not answer."""
        found = []
        for site, world in self.worlds.items():
            with world.read() as turn:
                found += [(site, guest) for guest in turn.every(Guest)]
        return found

    def weather(self, site: str) -> Weather:
        with self.worlds[site].read() as turn:
            return weather(turn)

    def lie(self, site: str, host: str, instance_id: str) -> None:
        """A host claims to run an instance of another host of its site."""
        with self.worlds[site].write() as turn:
            guest = turn.get(Guest, instance_id)
            is_there = any(each.machine.id == instance_id for each in turn.on_host(Guest, host))
            if guest is not None and not is_there:
                machine = msgspec.structs.replace(
                    guest.machine, handle=msgspec.structs.replace(guest.machine.handle, host=host), gpus=()
                )
                turn.put(msgspec.structs.replace(guest, machine=machine, is_second=True, ports=()))
                self.lies.add((instance_id, host))
                self.count["lies"] += 1

    def join(self, site: str) -> None:
        """Let the host of a site join, if it is not part of the installation."""
        host = JoinedHost(
            name=site, number=1, certificate="", cards=(), trusted_wire=True, joined_at=self.clock.now()
        )

        def work(tx: Transaction) -> None:
            if not joined_hosts.is_joined(tx, site):
                joined_hosts.insert(tx, host)
                site_records.insert(tx, SiteRecord(name=site, kind="joined", options={}), self.clock.now())

        self.database.write(work)

    def remove_lost(self, site: str = LONE) -> None:
        """An operator switches the machine off, and removes it when it counts as lost."""
        self.trouble[site].host_goes_away(self._only_host(site).name)
        self.trouble[site].power_off(self._only_host(site).name)
        self.pass_time(330)
        self.ask(self._remove_lost)

    def _remove_lost(self) -> None:
        losses = self.joins.remove_lost(self.actor, self._only_host(LONE).id)
        self.count["removed hosts"] += 1
        self.count["instances lost with them"] += losses.instances

    def _only_host(self, site: str) -> Host:
        with self.database.read() as tx:
            return hosts.at_site(tx, site)[0]

    # what must hold

    def check_copies(self) -> None:
        """No address runs twice, and no instance runs twice on hosts that are recorded as present."""
        with self.database.read() as tx:
            rows = tx.all("SELECT site, name FROM host WHERE state IN ('ready', 'draining')")
        present = {(site, name) for site, name in rows}
        addresses: Counter[tuple[str, str]] = Counter()
        copies: Counter[str] = Counter()
        for site, guest in self.guests():
            if not guest.running or (guest.machine.id, guest.host) in self.lies:
                continue
            addresses[guest.machine.network.project_id, guest.machine.address] += 1
            copies[guest.machine.id] += (site, guest.host) in present
        assert max(addresses.values(), default=0) <= 1, f"an address runs twice: {addresses}"
        assert max(copies.values(), default=0) <= 1, f"an instance runs twice: {copies}"

    def settle(self) -> None:
        """Everything comes back. Nothing is forgotten, nothing is left over, and the bill is proved."""
        self.slow.clear()
        for trouble in self.trouble.values():
            trouble.all_is_well()
        for claims in self.claims.values():
            claims.clear()
        self.database.live()
        if LONE in self.sites:
            self.join(LONE)
        self.pass_time(120)
        names = {id: (host.site, host.name) for id, host in self.all_hosts().items()}
        guests = {(site, guest.host, guest.machine.id): guest for site, guest in self.guests()}
        rows = {}
        for each in self.there():
            assert each.progress is None, f"{each.id} is stuck at {each.progress}"
            assert each.phase in (Phase.RUNNING, Phase.STOPPED, Phase.FAILED), each.phase
            # a stopped one that lost its disk gets another one when it is started
            if each.phase != Phase.FAILED and not (each.phase == Phase.STOPPED and each.request):
                rows[(*names[each.host_id or ""], each.id)] = each
        assert guests.keys() == rows.keys(), "guests and rows differ"
        for key, row in rows.items():
            assert guests[key].running == (row.phase == Phase.RUNNING), key
            assert guests[key].machine.address == row.address
        with self.database.read() as tx:
            assert tx.all("SELECT * FROM left_behind") == []
            copies = disk_copies.all_in_all_projects(tx)
            held = tx.all("SELECT host_id, slot FROM host_gpu WHERE instance_id IS NOT NULL")
        assert len(held) == sum(len(each.held.gpus) for each in rows.values())
        existing = {str(each.id): each for each in self.there() if each.phase != Phase.FAILED}
        self._check_disk_copies(copies, existing)
        self.bills.meter.catch_up()
        self.bills.meter.sweep()
        self.bills.biller.catch_up()
        verdict = verify(self.database)
        assert verdict.is_sound, verdict.faults[:3]

    def _check_disk_copies(self, copies: Sequence[DiskCopy], rows: Mapping[str, Instance]) -> None:
        """Engines have the copies of the rows and no others, and each counts for its instance."""
        kept = {id for driver in self.engines for id in driver.images() if id.startswith("cpy")}
        assert kept == {each.id for each in copies}, "copies and rows differ"
        sizes: Counter[str] = Counter()
        for each in copies:
            assert each.state == CopyState.READY, f"{each.id} was never finished"
            assert each.instance_id in rows, f"{each.id} outlived its instance"
            sizes[each.instance_id] += each.size_bytes
        for id, row in rows.items():
            assert row.held.snapshots_bytes == sizes[id], f"{id}: {row.held.snapshots_bytes} != {sizes[id]}"


def _no_package() -> Package:
    raise AssertionError("no host is upgraded here")
