"""Launch until SSH answers: through our driver, and by hand with the `lxc` command, in turns on one engine.

Both make the same container (image, limits, address, keys, filters), both are asked by the same knocking and then by
one real `ssh` command. By hand is what the engine's own client does: a container from the image, then started.
"""

import os
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import perf_counter
from typing import Final

import msgspec
from tests.engine.house import House, NoHouse, mark_cgroups
from tests.engine.login import Login

from bench.figures import Figure, Section
from bench.processes import Fault
from teraflock.drivers.lxd import build, guest, names, recipe
from teraflock.drivers.lxd.driver import Lxd, answers_ssh, new_host_key
from teraflock.drivers.lxd.names import Names
from teraflock.drivers.lxd.setup import PoolWish
from teraflock.fleet.model import HostReport
from teraflock.instance.driver import Handle, Machine, Network, Port
from teraflock.instance.model import InstanceId
from teraflock.tenant.model import ProjectId

IMAGES: Final = Path(os.environ.get("TERA_IMAGES", "/var/cache/teraflock/images"))
INSTALLATION: Final = f"b{os.getpid()}".ljust(4, "0")
NETWORK: Final = Network(
    project_id=ProjectId("prj_bench"), number=1, subnet="10.128.16.0/24", gateway="10.128.16.1"
)
TURNS: Final = 9
AT_ONCE: Final = 20
ROUNDS: Final = 2
ANSWER_SECONDS_MAX: Final = 60.0
GIB: Final = 1 << 30


def measure() -> Iterator[Section]:
    try:
        file = build.build(recipe.read("base"), IMAGES, created_at=1)
        house = House()
    except (NoHouse, build.BuildFailed) as reason:
        yield Section(title="launch until ssh answers", notes=(f"not measured: {reason}",))
        return
    mark_cgroups(house.folder, f"tera-{INSTALLATION}")
    try:
        with house.inside(), tempfile.TemporaryDirectory() as folder:
            bench = _Bench(house, Path(folder))
            yield bench.one_after_the_other(file)
            yield bench.at_once()
            bench.close()
    finally:
        house.close()


class _Bench:
    def __init__(self, house: House, folder: Path) -> None:
        report = HostReport(name="here", address="198.51.100.1", vcpus=2, ram_bytes=1, disk_bytes=1)
        self._driver = Lxd(
            house.daemon.socket_path,
            INSTALLATION,
            report=lambda: report,
            image_cache=IMAGES,
            now=lambda: 1,
            pool=PoolWish(size_bytes=30 * GIB),
            way_out=False,
        )
        self._lxd = house.daemon.folder
        self._login = Login(folder)
        self._driver.set_up()
        self._driver.build_image("img_base", "base")
        self._driver.prepare(self._machine(0))

    def close(self) -> None:
        self._driver.close()

    def one_after_the_other(self, file: Path) -> Section:
        taken: dict[str, list[float]] = {"ours": [], "hand": []}
        for turn in range(-1, TURNS):  # the first pair only warms the caches
            for name, launch in (("hand", self._by_hand), ("ours", self._ours)):
                machine = self._machine(abs(turn) + 1)
                seconds = launch(machine)
                if turn >= 0:
                    taken[name].append(seconds)
                self._driver.delete(machine.handle)
        return _section(
            f"launch until ssh answers (image of {file.stat().st_size >> 20} MiB, cached)", taken, 1.15
        )

    def at_once(self) -> Section:
        taken: dict[str, list[float]] = {"ours": [], "hand": []}
        for _ in range(ROUNDS):
            for name, launch in (("hand", self._by_hand), ("ours", self._ours)):
                machines = [self._machine(number + 50) for number in range(AT_ONCE)]
                began = perf_counter()
                _all(launch, machines)
                taken[name].append(perf_counter() - began)
                _all(lambda machine: self._driver.delete(machine.handle), machines)
        return _section(f"{AT_ONCE} launches at once, until the last answers", taken, 1.2)

    def _ours(self, machine: Machine) -> float:
        began = perf_counter()
        self._driver.prepare(machine)
        self._driver.create(machine)
        self._driver.start(machine.handle)
        self._driver.expose(machine)
        readiness = self._driver.ready(machine)
        while not readiness.ready:
            readiness = self._driver.ready(machine)
        self._answered(machine, readiness.host_key)
        return perf_counter() - began

    def _by_hand(self, machine: Machine) -> float:
        key = new_host_key()
        body = guest.body(machine, Names(INSTALLATION), key, "")
        wanted = msgspec.json.encode({"config": body["config"], "devices": body["devices"]})
        began = perf_counter()
        subprocess.run(
            [
                "lxc",
                "--project",
                f"tera-{INSTALLATION}",
                "launch",
                "img_base",
                names.guest(machine.id),
                "--quiet",
            ],
            input=wanted,
            env={**os.environ, "LXD_DIR": str(self._lxd)},
            check=True,
            capture_output=True,
        )
        if not answers_ssh(machine.address, ANSWER_SECONDS_MAX):
            raise Fault("a guest made by hand never answered")
        self._answered(machine, key.public)
        return perf_counter() - began

    def _answered(self, machine: Machine, key: str) -> None:
        answer = self._login.run(machine.address, 22, key, "hostname")
        if answer.stdout.strip() != machine.hostname:
            raise Fault(f"ssh did not answer: {answer.stderr}")

    def _machine(self, number: int) -> Machine:
        return Machine(
            handle=Handle(InstanceId(f"ins_{number:016d}"), "here"),
            hostname=f"box-{number}",
            image="img_base",
            vcpus=1,
            ram_bytes=GIB // 2,
            disk_bytes=2 * GIB,
            network=NETWORK,
            address=f"10.128.16.{number + 10}",
            ports=(Port(20_000 + number, 22),),
            authorized_keys=(self._login.public_key,),
        )


def _all(act: Callable[[Machine], object], machines: Sequence[Machine]) -> None:
    # Threads start where their maker is: on the guests' host.
    with ThreadPoolExecutor(len(machines)) as pool:
        list(pool.map(act, machines))


def _section(title: str, taken: dict[str, list[float]], bar: float) -> Section:
    shares = tuple(ours / hand for ours, hand in zip(taken["ours"], taken["hand"], strict=True))
    return Section(
        title=title,
        figures=(
            Figure(what="by hand with lxc", unit="s", samples=tuple(taken["hand"])),
            Figure(what="ours", unit="s", samples=tuple(taken["ours"])),
            Figure(what="ours, of by hand", unit="×", samples=shares, bar=bar),
        ),
    )
