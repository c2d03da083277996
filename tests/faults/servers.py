"""Real server processes without sockets, which share one home. They end with `kill -9`, at a given point or
at once.

They are forked from a fork server that has everything loaded, because a walk starts a hundred of them.
"""

import multiprocessing
import os
import signal
import time
from collections.abc import Callable
from datetime import timedelta
from multiprocessing.context import ForkServerProcess
from operator import attrgetter
from pathlib import Path

from tests.api.asking import Asking
from tests.faults.checker import faults
from tests.faults.installation import Tenant

from teraflock.app.settings import Place, Settings
from teraflock.app.wiring import Cloud
from teraflock.drivers.simulated.engine import SimulatedEngine
from teraflock.drivers.simulated.trouble import Trouble
from teraflock.instance.service import InstanceService
from teraflock.reconcile import loops
from teraflock.wire.instance import LaunchRequest

FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(["tests.faults.servers", "teraflock.drivers.simulated.site"])
DEATH_SECONDS_MAX = 60.0
REST_SECONDS_MAX = 10.0
"""The documented limit: everything must be consistent again this long after a restart."""
LOOK_AGAIN_SECONDS = 0.02
HOSTS = "1x3xV100"
MEMORY = Path("/dev/shm")
HOMES = str(MEMORY) if os.access(MEMORY, os.W_OK) else None
"""Folder for homes: in memory if possible, because only processes are killed here and not the machine."""


SKY = {
    "kind": "simulated", "style": "cloud", "open": "true", "types": "gpu=1xV100@east:0.90/0.30,west:1.00",
    "launch_seconds": "0.05", "boot_seconds": "0.02",
}  # fmt: skip


def settings(database: str = "", dies_at: str = "") -> Settings:
    return Settings(
        engine="simulated",
        simulated_hosts=HOSTS,
        simulated_boot_seconds=0.02,
        faults=dies_at,
        database=database,
        sites={"sky": SKY},
    )


LEASE_SECONDS = 3.0
"""Half of the usual time: a survivor waits this long before it takes over, at every point of every walk."""


def run(home: str, with_settings: Settings) -> None:
    """Run a server process."""
    if with_settings.database:  # which it may share
        vars(loops).update(WORKER_TIME=timedelta(seconds=LEASE_SECONDS), HEARTBEAT_SECONDS=LEASE_SECONDS / 3)
    cloud = Cloud(Place(Path(home)), with_settings)
    cloud.start()
    signal.pause()


class Site:
    """A home on disk, with the tests' own access to it: requests, checks, and server processes."""

    def __init__(self, home: Path, database: str = "") -> None:
        self.home = home
        self._database = database
        self.cloud = Cloud(Place(home), settings(database))
        self.tenant = Tenant(self.cloud.database, self.cloud.clock, lambda count: bytes(range(count)))
        engine, sky = self.cloud.engines.at("simulated"), self.cloud.engines.at("sky")
        assert isinstance(engine, SimulatedEngine)
        assert isinstance(sky, SimulatedEngine)
        self.engine, self.sky = engine, sky
        self.trouble, self.sky_trouble = Trouble(engine.world), Trouble(sky.world)
        self._processes: list[ForkServerProcess] = []
        self._asking = Asking(self.cloud)
        self.cloud.services.nouns.images.build(self.tenant.actor, self.tenant.project, "base", "base")
        self.work()

    @property
    def service(self) -> InstanceService:
        return self.cloud.services.nouns.instances

    def ask(self, act: str, *words: object) -> object:
        call: Callable[..., object] = attrgetter(act)(self.service)
        return call(self.tenant.actor, self.tenant.project, *words)

    def launch_once(self, key: str, request: LaunchRequest) -> str:
        """Launch over the API like a client that retries after a lost response. Return the instance id."""
        headers = {"Idempotency-Key": key}
        answer = self._asking.ask("POST", "/v1/instances", self.tenant.secret, body=request, headers=headers)
        assert answer.status in (200, 201, 202), answer.body
        (made,) = answer.json["items"]
        return str(made["id"])

    def work(self) -> None:
        """Run the loops in this process, step by step, until nothing is left to do."""
        own = self.cloud.loops
        own.hosts.turn()
        own.images.turn()
        while not self._at_rest():
            own.beat()
            for instance in own.instances.lease():
                own.instances.advance(instance)

    def serve(self, dies_at: str = "") -> ForkServerProcess:
        process = FORKS.Process(target=run, args=(str(self.home), settings(self._database, dies_at)))
        process.start()
        self._processes.append(process)
        return process

    def death(self, process: ForkServerProcess) -> int | None:
        process.join(DEATH_SECONDS_MAX)
        return process.exitcode

    def seconds_to_rest(self, seconds_max: float = REST_SECONDS_MAX) -> float:
        """Return how long it takes until everything is consistent. Raise with the problems if it takes too
        long."""
        began = time.monotonic()
        while not (self._at_rest() and not self.wrong()):
            if time.monotonic() - began > seconds_max:
                raise AssertionError("\n".join(["not idle in time", *self.wrong()]))
            time.sleep(LOOK_AGAIN_SECONDS)
        return time.monotonic() - began

    def wrong(self) -> list[str]:
        return faults(self.cloud.database, self.engine.world, self.cloud.clock.now(), self.sky.world)

    def kill(self) -> None:
        for process in self._processes:
            process.kill()
            process.join()
            process.close()
        self._processes.clear()

    def close(self) -> None:
        self.kill()
        self._asking.close()
        self.cloud.stop()
        self.engine.world.close()
        self.sky.world.close()

    def _at_rest(self) -> bool:
        with self.cloud.database.read() as tx:
            return not tx.one("SELECT 1 FROM instance WHERE settled = 0 OR lease_owner <> ''")
