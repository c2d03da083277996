"""A cloud's driver alone, against its fake: without database and loops, so that each test costs milliseconds."""

from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from tests.contract.cloud.ground import KINDS, MORE, START, derive
from tests.contract.driver.grounds import network
from tests.fakes.guest import FakeLink

from teraflock.base.clock import FixedClock, microseconds
from teraflock.drivers.clouds.engine import CloudSite
from teraflock.drivers.clouds.model import Pace
from teraflock.drivers.clouds.pacing import Pacer
from teraflock.drivers.clouds.site import cloud_class
from teraflock.instance.driver import GpuSlot, Handle, Machine, Made, Port, Readiness, Rental
from teraflock.instance.ending import StillEnding
from teraflock.instance.model import InstanceId

ID = InstanceId("ins_m7e81w00zd0ddegj")


class Direct:
    def __init__(self, kind: str, folder: Path, judge: Any = None) -> None:
        self.kind = {**KINDS, **MORE}[kind]
        self.clock = FixedClock(START)
        self.fake = self.kind.fake(self.clock, judge=judge)
        self.link = FakeLink(self.fake)
        self.folder = folder
        self.site = self.open()

    def open(self, **options: str) -> CloudSite:
        """The driver as a new process opens it."""
        cloud = cloud_class(self.kind.kind)
        secret = self.fake.secret
        return CloudSite(
            "acct",
            "m7e81w00sm3jsp32",
            self.clock,
            cloud=cloud({**cloud.facts(secret), **self.fake.options, **options}),
            transport=self.fake,
            signer=cloud.signer(secret),
            pacer=Pacer(
                Pace(call_seconds=0, launch_seconds=0),
                seconds=lambda: microseconds(self.clock.now()) / 10**6,
                pause=self.wait,
            ),
            link=self.link,
            derive=derive,
            folder=self.folder,
        )

    def wait(self, seconds: float) -> None:
        self.clock.move(timedelta(seconds=seconds))

    def machine(
        self,
        token: str = f"{ID}.1.0",
        remote_id: str = "",
        given: Mapping[str, Any] | None = None,
        **rental: Any,
    ) -> Machine:
        """`given` changes the machine, the rest what is rented."""
        machine = Machine(
            handle=Handle(ID, "", remote_id), hostname="one", image="img_1", vcpus=1, ram_bytes=1, disk_bytes=1,
            gpus=(GpuSlot("rented-0", "physical"),),  # type: ignore[arg-type]
            network=network(1), address="", ports=(Port(0, 22),), authorized_keys=("ssh-ed25519 AAAAtenant",),
            rental=Rental(
                **{"type": self.kind.type, "region": self.kind.first_region, "token": token, **rental}
            ),
        )  # fmt: skip
        return replace(machine, **(given or {}))

    def create(self, **rental: Any) -> Made:
        made = self.site.create(self.machine(**rental))
        assert made is not None
        return made

    def ready(self, made: Made, **rental: Any) -> Readiness:
        for _ in range(20):
            found = self.site.ready(self.machine(remote_id=made.remote_id, **rental))
            if found.ready:
                return found
            self.wait(10)
        pytest.fail(f"not ready: {found.doing}")

    def delete(self, made: Made) -> None:
        for _ in range(5):
            try:
                return self.site.delete(Handle(ID, "", made.remote_id))
            except StillEnding:
                self.wait(3)
        pytest.fail("the delete is never confirmed")
