"""An installation whose account is at a fake cloud: real loops, the real engine, and a clock to move."""

import hmac
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
from tests.fakes.alibaba import FakeAlibaba
from tests.fakes.azure import FakeAzure
from tests.fakes.baidu import FakeBaidu
from tests.fakes.base import FakeCloud
from tests.fakes.ec2 import FakeEc2
from tests.fakes.gce import FakeGce
from tests.fakes.genesis import TYPE as GENESIS
from tests.fakes.genesis import FakeGenesis
from tests.fakes.guest import FakeLink
from tests.fakes.huawei import FakeHuawei
from tests.fakes.ibm import FakeIbm
from tests.fakes.lambda_cloud import FakeLambda
from tests.fakes.oracle import FakeOracle
from tests.fakes.paperspace import FakePaperspace
from tests.fakes.runpod import FakeRunPod
from tests.fakes.tencent import FakeTencent
from tests.fakes.vast import FakeVast
from tests.faults.installation import Installation

from teraflock.base.clock import FixedClock, microseconds
from teraflock.bill.margin.rules import cost_between
from teraflock.bill.margin.store import rates_at_site
from teraflock.drivers.clouds.engine import CloudSite
from teraflock.drivers.clouds.model import Pace
from teraflock.drivers.clouds.pacing import Pacer
from teraflock.drivers.clouds.site import cloud_class
from teraflock.drivers.simulated.world import MemoryWorld
from teraflock.instance.driver import GRACE
from teraflock.instance.model import Instance
from teraflock.instance.orders import Order
from teraflock.instance.site.model import SiteRecord
from teraflock.storage.database import Database
from teraflock.storage.memory import MemoryDatabase
from teraflock.storage.migrate import migrate
from teraflock.tenant.model import NO_PROJECT

START = datetime(2026, 11, 15, tzinfo=UTC)
SITE = "acct"


class Kind(msgspec.Struct, frozen=True):
    kind: str
    fake: type[FakeCloud]
    type: str
    first_region: str
    other_region: str = ""
    """Empty: the cloud chooses the place itself."""
    notice: str = ""
    """What the metadata service of a spot machine says before its end, with `TIME`."""


IDLE_ROUNDS = 5

KINDS = {
    "lambda": Kind("lambda", FakeLambda, "gpu_1x_a10", "us-east-1", "us-west-1"),
    "runpod": Kind("runpod", FakeRunPod, "1x_NVIDIA_L4", "EU-RO-1", "US-KS-2"),
    "vast": Kind("vast", FakeVast, "1x_RTX_4090", "US", "DE"),
}
"""Clouds on which the whole contract runs."""
EVENT = '{"Events": [{"EventType": "Preempt", "NotBefore": "TIME"}]}'
MORE: dict[str, Kind] = {
    "alibaba": Kind("alibaba", FakeAlibaba, "ecs.gn6i-c4g1.xlarge", "cn-hangzhou", "cn-shanghai", "TIME"),
    "aws": Kind(
        "aws", FakeEc2, "g4dn.xlarge", "us-east-1", "us-west-2", '{"action": "terminate", "time": "TIME"}'
    ),
    "baidu": Kind("baidu", FakeBaidu, "bcc.gn5.c12m48.1a10", "bj", "gz"),
    "genesis": Kind("genesis", FakeGenesis, GENESIS, "ARC-IS-HAF-1", "NORD-NO-KRS-1"),
    "huawei": Kind("huawei", FakeHuawei, "pi2.2xlarge.4", "cn-east-3", "cn-north-4"),
    "ibm": Kind("ibm", FakeIbm, "gx3-16x80x1l4", "us-east", "us-south"),
    "oci": Kind("oci", FakeOracle, "VM.GPU.A10.1", "us-ashburn-1", "us-phoenix-1"),
    "paperspace": Kind("paperspace", FakePaperspace, "A4000", "ams1", "ca1"),
    "azure": Kind("azure", FakeAzure, "Standard_NC4as_T4_v3", "eastus", "westus3", EVENT),
    "tencent": Kind("tencent", FakeTencent, "GN7.2XLARGE32", "ap-guangzhou", "ap-shanghai", "TIME"),
    "gcp": Kind("gcp", FakeGce, "g2-standard-4", "us-central1", "us-east1", "TRUE"),
}
"""Clouds on which the parts of the contract run that a module decides. The engine is the same."""


def derive(purpose: str) -> bytes:
    return hmac.digest(b"installation", purpose.encode(), "sha256")


class Ground:
    def __init__(self, kind: str, folder: Path, **options: Any) -> None:
        self.kind = {**KINDS, **MORE}[kind]
        self.clock = FixedClock(START)
        database = MemoryDatabase()
        migrate(database, self.clock)
        self.fake = self.kind.fake(self.clock, **options)
        self.link = self.linked()
        self.folder = folder
        self.installation = self.installed(database)
        self.open()
        self.installation.workers[0].look()

    def linked(self) -> FakeLink:
        return FakeLink(self.fake)

    def installed(self, database: Database) -> Installation:
        return Installation(database, MemoryWorld(), self.clock)

    def open(self) -> CloudSite:
        """Open the site as a new process does: without anything in memory."""
        return self.open_site(SITE, self.kind.kind, self.fake, self.link)

    def open_site(self, site: str, name: str, fake: FakeCloud, link: FakeLink) -> CloudSite:
        kind = cloud_class(name)
        driver = CloudSite(
            site,
            self.installation.tenant.mark,
            self.clock,
            cloud=kind({**kind.facts(fake.secret), **fake.options}),
            transport=fake,
            signer=kind.signer(fake.secret),
            pacer=Pacer(
                Pace(call_seconds=0, launch_seconds=0), seconds=self._seconds, pause=self.installation.wait
            ),
            link=link,
            derive=derive,
            folder=self.folder,
        )
        self.installation.engines.put(driver, SiteRecord(name=site, kind=name), for_all=True)
        return driver

    @property
    def driver(self) -> CloudSite:
        driver = self.installation.engines.at(SITE)
        assert isinstance(driver, CloudSite)
        return driver

    def _seconds(self) -> float:
        return microseconds(self.clock.now()) / 10**6

    def order(self, **changes: Any) -> Order:
        return Order(**{"name": "one", "site": SITE, "type": self.kind.type, **changes})

    def launch(self, **changes: Any) -> None:
        self.installation.service.launch(
            self.installation.tenant.actor, self.installation.tenant.project, self.order(**changes)
        )

    def delete(self) -> None:
        self.installation.service.delete(
            self.installation.tenant.actor, self.installation.tenant.project, "one"
        )

    def one(self) -> Instance:
        return self.installation.service.page(self.installation.tenant.project.id, limit=9, gone=True)[
            0
        ].instance

    def settle(self) -> None:
        """Settle until listings show everything and extra machines are gone."""
        self.installation.settle()
        self.installation.wait(GRACE.total_seconds())
        self.installation.settle()

    def work(self, rounds: int = 60, seconds: float = 2.0) -> None:
        """Let the loops run for a while; a worker that dies is replaced by one without memory.

        While nothing is due, each round stands for several: only listings can change.
        """
        over_at = self._seconds() + rounds * seconds
        while (left := over_at - self._seconds()) > 0:
            worker = self.installation.workers[0]
            if not self.installation.survive(worker.turn, 0) or not self.installation.survive(worker.look, 0):
                self.open()
            self.installation.wait(min(left, IDLE_ROUNDS * seconds) if self.installation.idle() else seconds)

    def recorded(self, site: str = SITE) -> int:
        """What an account cost so far, as recorded."""
        with self.installation.database.read() as tx:
            rates = rates_at_site(tx, site, NO_PROJECT, 0)
        return sum(cost_between(each, 0, microseconds(self.clock.now())) for each in rates.values())
