"""Measure a launch until SSH answers: with Teraflock, and with the `lxc` command, in turns on one engine.

A launch with Teraflock includes quota, placement, database, loops and driver, but not the HTTP request. Both ways
create the same container (image, limits, keys, filters) and check it with one `ssh` command. `lxc` only creates a
container from the image and starts it.
"""

import logging
import os
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import perf_counter, sleep
from typing import Any, Final, TypeVar

import msgspec
from tests.engine.login import Login
from tests.engine.sandbox import NoSandbox, Sandbox, mark_cgroups

from bench.figures import Figure, Section
from bench.processes import Fault
from teraflock.app.settings import Place, Settings
from teraflock.app.wiring import Cloud
from teraflock.drivers.lxd import build, confinement, guest, names
from teraflock.drivers.lxd.driver import Lxd
from teraflock.drivers.lxd.names import Names
from teraflock.drivers.lxd.setup import PoolWish
from teraflock.drivers.lxd.ssh import answers_ssh, new_host_key
from teraflock.fleet.model import HostReport
from teraflock.image import recipe
from teraflock.image.model import ImageState
from teraflock.instance.driver import Handle, Machine, Network, Port
from teraflock.instance.engines import Engines
from teraflock.instance.model import Instance, InstanceId
from teraflock.instance.orders import Order, ShapeWish
from teraflock.instance.states import Phase
from teraflock.tenant.model import ProjectId

IMAGES: Final = Path(os.environ.get("TERA_IMAGES", "/var/cache/teraflock/images"))
INSTALLATION: Final = f"b{os.getpid()}".ljust(4, "0")
NETWORK: Final = Network(
    project_id=ProjectId("prj_bench"), number=1, subnet="10.128.16.0/24", gateway="10.128.16.1"
)
TURNS: Final = 9
AT_ONCE: Final = 20
ROUNDS: Final = 2
ANSWER_SECONDS_MAX: Final = 240.0
GIB: Final = 1 << 30
RANGES_BY_HAND: Final = 3000
"""Ranges of user ids for guests created with `lxc`. Teraflock uses others."""
STOCK: Final = 8
MANY: Final = 216
MANY_AT_ONCE: Final = 24
PAUSE_SECONDS: Final = 0.005
MANY_PAUSE_SECONDS: Final = 0.25
"""How often to look at each instance: seldom where 24 are looked at, so that looking does not slow them down."""

T = TypeVar("T")


def measure() -> Iterator[Section]:
    try:
        file = build.build(recipe.read("base"), IMAGES, created_at=1)
        host = Sandbox("bench-")
    except (NoSandbox, build.BuildFailed) as reason:
        yield Section(title="launch until SSH answers", notes=(f"not measured: {reason}",))
        return
    mark_cgroups(host.folder, f"tera-{INSTALLATION}")
    logging.getLogger("teraflock").setLevel(
        logging.ERROR
    )  # it would warn about every guest created with `lxc`
    try:
        with host.inside(), tempfile.TemporaryDirectory() as folder:
            bench = OnLxd(host, Path(folder))
            yield bench.one_after_the_other(file)
            yield bench.at_once()
            yield bench.many()
            bench.close()
    finally:
        host.close()


class OnLxd:
    def __init__(self, host: Sandbox, folder: Path) -> None:
        report = HostReport(
            name="here", address="198.51.100.1", vcpus=2, ram_bytes=64 * GIB, disk_bytes=1024 * GIB
        )
        self.driver = Lxd(
            host.daemon.socket_path,
            INSTALLATION,
            report=lambda: report,
            host=report.name,
            image_cache=IMAGES,
            now=lambda: 1,
            pool=PoolWish(size_bytes=30 * GIB),
            way_out=False,
            ranges_folder=folder / "ids",
            stock=STOCK,
        )
        self._lxd = host.daemon.folder
        self._pause = PAUSE_SECONDS
        self._login = Login(folder)
        self.driver.set_up()
        self._cloud = Cloud(Place(folder), Settings(rate_per_second=0), engines=Engines([self.driver]))
        self._nouns = self._cloud.services.nouns
        self._actor = self._nouns.tenants.authenticate(str(self._cloud.installed.secret))
        self._project = self._nouns.tenants.projects.show(self._actor, None)
        self._nouns.images.build(self._actor, self._project, "base", "base")
        self._cloud.start()
        while self._nouns.images.image(self._project.id, "base").state != ImageState.READY:
            sleep(0.1)
        self._image = self._nouns.images.image(self._project.id, "base").id
        self.driver.prepare(self._machine(0))
        while len(self.driver.moulds(self._image)) < STOCK:
            sleep(5)  # like a host that has been up for a minute, with prepared guests

    def close(self) -> None:
        self._cloud.stop()
        self.driver.close()

    def one_after_the_other(self, file: Path) -> Section:
        taken: dict[str, list[float]] = {"ours": [], "hand": []}
        for turn in range(-1, TURNS):  # the first pair is a warm-up
            machine = self._machine(abs(turn) + 1)
            hand = self._by_hand(machine)
            self.driver.delete(machine.handle)
            ours = self.launched(1)
            if turn >= 0:
                taken["hand"].append(hand)
                taken["ours"].append(ours)
        return _section(
            f"launch until SSH answers (image of {file.stat().st_size >> 20} MiB, cached)", taken, 1.0
        )

    def at_once(self) -> Section:
        taken: dict[str, list[float]] = {"ours": [], "hand": []}
        for _ in range(ROUNDS):
            machines = [self._machine(number + 50) for number in range(AT_ONCE)]
            began = perf_counter()
            _all(self._by_hand, machines)
            taken["hand"].append(perf_counter() - began)
            _all(lambda machine: self.driver.delete(machine.handle), machines)
            taken["ours"].append(self.launched(AT_ONCE))
        return _section(f"{AT_ONCE} concurrent launches, until the last answers", taken, 1.2)

    def many(self) -> Section:
        """Check that every one of many launches succeeds and leaves nothing behind."""
        seconds, lost = [], []
        self._pause = MANY_PAUSE_SECONDS
        for _ in range(MANY // MANY_AT_ONCE):
            began = perf_counter()
            try:
                self.launched(MANY_AT_ONCE)
            except Fault as fault:
                lost.append(str(fault))
            seconds.append(perf_counter() - began)
        made = MANY // MANY_AT_ONCE * MANY_AT_ONCE
        return Section(
            title=f"{made} launches, {MANY_AT_ONCE} at a time, each until SSH answers, then deleted",
            figures=(Figure(what="a round", unit="s", samples=tuple(seconds)),),
            notes=(f"rounds with a failed launch: {len(lost)}", *lost),
        )

    def launched(self, count: int) -> float:
        """Launch instances and connect to each with SSH once it runs. Deleting them is not measured."""
        order = Order(
            shape=ShapeWish(vcpus=1, ram_bytes=GIB // 2, disk_bytes=2 * GIB),
            authorized_keys=(self._login.public_key,),
            instances=count,
        )
        began = perf_counter()
        made = self._nouns.instances.launch(self._actor, self._project, order)
        try:
            _all(lambda each: self._answered_as_launched(each.id), made)
            return perf_counter() - began
        finally:
            for each in made:
                self._nouns.instances.delete(self._actor, self._project, each.id)
            for each in made:
                self._wait_for(each.id, Phase.GONE)

    def _answered_as_launched(self, id: str) -> None:
        instance = self._wait_for(id, Phase.RUNNING)
        self._answered(str(instance.address), instance.name, instance.host_key)

    def _wait_for(self, id: str, phase: Phase) -> Instance:
        until = perf_counter() + ANSWER_SECONDS_MAX
        while (instance := self._nouns.instances.view(self._project.id, id).instance).phase != phase:
            if instance.phase == Phase.FAILED or perf_counter() > until:
                reason = instance.problem_operator or instance.problem
                raise Fault(f"{id} is {instance.phase}, wanted {phase}: {reason}")
            sleep(self._pause)
        return instance

    def _by_hand(self, machine: Machine) -> float:
        key = new_host_key()
        confined = confinement.settings(RANGES_BY_HAND + int(machine.ports[0].host_port) % 1000)
        body = guest.body(machine, Names(INSTALLATION), key, "", guest.GuestHost(confined=confined))
        devices: Any = body["devices"]
        # Guests created with `lxc` use the engine's filters; Teraflock has its own table.
        del devices["eth0"]["host_name"]
        filters = {"security.mac_filtering": "true", "security.ipv4_filtering": "true"}
        devices["eth0"] |= {"ipv4.address": machine.address, **filters}
        wanted = msgspec.json.encode({"config": body["config"], "devices": devices})
        began = perf_counter()
        subprocess.run(
            [
                "lxc",
                "--project",
                f"tera-{INSTALLATION}",
                "launch",
                self._image,
                names.guest(machine.id),
                "--quiet",
            ],
            input=wanted,
            env={**os.environ, "LXD_DIR": str(self._lxd)},
            check=True,
            capture_output=True,
        )
        if not answers_ssh(machine.address, ANSWER_SECONDS_MAX):
            raise Fault("a guest created with lxc never answered")
        self._answered(machine.address, machine.hostname, key.public)
        return perf_counter() - began

    def _answered(self, address: str, name: str, key: str) -> None:
        answer = self._login.run(address, 22, key, "hostname")
        if answer.stdout.strip() != name:
            raise Fault(f"ssh did not answer: {answer.stderr}")

    def _machine(self, number: int) -> Machine:
        return Machine(
            handle=Handle(InstanceId(f"ins_{number:016d}"), "here"),
            hostname=f"box-{number}",
            image=self._image,
            vcpus=1,
            ram_bytes=GIB // 2,
            disk_bytes=2 * GIB,
            network=NETWORK,
            address=f"10.128.16.{number + 10}",
            ports=(Port(20_000 + number, 22),),
            authorized_keys=(self._login.public_key,),
        )


def _all(act: Callable[[T], object], things: Sequence[T]) -> None:
    # Threads start in the cgroup of their creator: that of the guests' host.
    with ThreadPoolExecutor(len(things)) as pool:
        list(pool.map(act, things))


def _section(title: str, taken: dict[str, list[float]], bar: float) -> Section:
    shares = tuple(ours / hand for ours, hand in zip(taken["ours"], taken["hand"], strict=True))
    return Section(
        title=title,
        figures=(
            Figure(what="lxc", unit="s", samples=tuple(taken["hand"])),
            Figure(what="ours", unit="s", samples=tuple(taken["ours"])),
            Figure(what="ours, relative to lxc", unit="×", samples=shares, bar=bar),
        ),
    )
