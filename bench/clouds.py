"""Measure rented machines: our own time per launch, and how often 200 machines in six accounts can be looked at.

Fakes of the providers answer at once, so the time of a launch is ours: processor time of the request and of the loops
until the machine is ready. The polls run on a clock that is moved, with the pacers of the real accounts: between two
calls of an account, the provider's interval passes.
"""

import tempfile
import time
from collections.abc import Iterator
from datetime import timedelta
from itertools import count
from pathlib import Path
from typing import Any, Final

from tests.contract.cloud.ground import KINDS, MORE, START, Ground, derive
from tests.fakes.guest import FakeLink

from bench.figures import Figure, Section
from teraflock.base.clock import FixedClock, microseconds
from teraflock.drivers.clouds.engine import CloudSite
from teraflock.drivers.clouds.pacing import Pacer
from teraflock.drivers.clouds.site import cloud_class
from teraflock.instance.driver import GpuSlot, Handle, Machine, Network, Port, Rental
from teraflock.instance.engine_errors import EngineBusy
from teraflock.instance.model import InstanceId
from teraflock.instance.states import Phase
from teraflock.tenant.model import ProjectId

LAUNCHES: Final = 20
LAUNCH_MS_MAX: Final = 150.0
ACCOUNTS: Final = ("lambda", "runpod", "gcp", "azure", "tencent", "ibm")
MACHINES: Final = 200
POLL_SECONDS_MAX: Final = 30.0
"""A machine that is lost is noticed after two listings: within a minute."""
POLLS: Final = 5


def measure() -> Iterator[Section]:
    with tempfile.TemporaryDirectory() as folder:
        launches = tuple(_launches(Path(folder)))
        figure = Figure(what="own time per launch", unit="ms", samples=launches, bar=LAUNCH_MS_MAX)
        yield Section(title="Rented machines, provider answers at once", figures=(figure,))
        share = MACHINES // len(ACCOUNTS) + 1
        figures = tuple(_polls(kind, share, Path(folder)) for kind in ACCOUNTS)
        title = f"{MACHINES} rented machines in {len(ACCOUNTS)} accounts, one listing of each, within its rate limit"
        yield Section(title=title, figures=figures)


def _launches(folder: Path) -> Iterator[float]:
    ground = Ground("lambda", folder, boot_seconds=0.0)
    for number in range(LAUNCHES):
        began = time.process_time()
        ground.launch(name=f"n{number}")
        for _ in range(50):
            ground.installation.workers[0].turn()
            ground.installation.workers[0].beat()
            found = ground.installation.service.view(
                ground.installation.tenant.project.id, f"n{number}"
            ).instance
            if found.phase == Phase.RUNNING:
                break
            ground.installation.wait(0.5)
        assert found.phase == Phase.RUNNING, found.problem_operator
        yield (time.process_time() - began) * 1000


def _polls(kind: str, machines: int, folder: Path) -> Figure:
    """Simulated seconds that one listing of an account takes, at the provider's pace."""
    known = {**KINDS, **MORE}[kind]
    clock = FixedClock(START)
    fake = known.fake(clock, boot_seconds=0.0)

    def wait(seconds: float) -> None:
        clock.move(timedelta(seconds=seconds))

    cloud = cloud_class(kind)
    pacer = Pacer(cloud.pace, seconds=lambda: microseconds(clock.now()) / 10**6, pause=wait)
    site = CloudSite(
        kind, "bench", clock, cloud=cloud({**cloud.facts(fake.secret), **fake.options}), transport=fake,
        signer=cloud.signer(fake.secret), pacer=pacer, link=FakeLink(fake), derive=derive, folder=folder,
    )  # fmt: skip
    numbers = count()
    while len(fake.alive) < machines:
        try:
            site.create(_machine(next(numbers), known.type, known.first_region))
        except EngineBusy:
            wait(10)
    site._types_asked_at = clock.now()
    samples = []
    for _ in range(POLLS):
        before, calls = clock.now(), len(fake.calls)
        assert len(list(site.sightings())) == machines
        took = (clock.now() - before).total_seconds()
        paced = (len(fake.calls) - calls - 1) * cloud.pace.call_seconds
        assert took >= paced - 1e-6, "faster than the provider allows"
        samples.append(took)
    return Figure(what=f"{kind}: {machines} machines", unit="s", samples=tuple(samples), bar=POLL_SECONDS_MAX)


def _machine(number: int, type: str, region: str) -> Machine:
    id = InstanceId(f"ins_{number:016d}")
    network: dict[str, Any] = {"project_id": ProjectId("prj_bench"), "number": 1, "subnet": "", "gateway": ""}
    return Machine(
        handle=Handle(id, ""), hostname=f"n{number}", image="img", vcpus=1, ram_bytes=1, disk_bytes=1,
        gpus=(GpuSlot("rented-0", "physical"),),  # type: ignore[arg-type]
        network=Network(**network), address="", ports=(Port(0, 22),),
        rental=Rental(type=type, region=region, token=f"{id}.1.0"),
    )  # fmt: skip
