"""The contract of drivers for clouds that rent out machines, tested on the template with a fake cloud.

Add a driver copied from the template to `drivers` below, with a fake of its own cloud.
"""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.contract.driver.grounds import network

from teraflock.base.clock import FixedClock
from teraflock.base.errors import BadInput
from teraflock.drivers import registry
from teraflock.drivers._template.driver import TemplateDriver
from teraflock.drivers._template.site import DRIVER
from teraflock.drivers.opening import Opening
from teraflock.drivers.rented import Remote
from teraflock.instance.driver import (
    GRACE,
    ComputeDriver,
    Endpoint,
    Handle,
    Machine,
    MachineType,
    Port,
    Rental,
    Seen,
)
from teraflock.instance.engine_errors import DoesNotBoot, EngineBusy, EngineDown, EngineMissing, EngineRefused
from teraflock.instance.model import InstanceId

START = datetime(2026, 11, 15, tzinfo=UTC)
TYPE = MachineType(
    name="gpu",
    region="east",
    vcpus=1,
    ram_bytes=1 << 30,
    disk_bytes=1 << 34,
    prices={"on-demand": 9},
    currency="USD",
)


class FilledIn(TemplateDriver):
    """The template with its four methods implemented, over machines in a dictionary."""

    def __init__(self, clock: FixedClock) -> None:
        super().__init__("sky", "mark", clock, url="", key="")
        self.there: dict[str, Remote] = {}
        self.unlisted: set[str] = set()
        self.loses_answers = False

    def types(self) -> Sequence[MachineType]:
        return (TYPE,)

    def _machines(self) -> Iterable[Remote]:
        return [each for id, each in self.there.items() if id not in self.unlisted]

    def _rent(self, machine: Machine) -> Remote:
        assert machine.rental is not None
        id = f"m-{len(self.there) + 1}"
        self.there[id] = Remote(
            remote_id=id, instance_id=machine.id, token=machine.rental.token, seen=Seen.PENDING, zone="east-a",
            price_micros_per_hour=9, currency="USD", doing="booting",
        )  # fmt: skip
        if self.loses_answers:
            raise EngineDown("No answer")
        return self.there[id]

    def _give_back(self, remote: Remote) -> None:
        self.there.pop(remote.remote_id, None)


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock(START)


@pytest.fixture
def driver(clock: FixedClock) -> FilledIn:
    return FilledIn(clock)


def machine(token: str = "ins_1.1.0", asked_at: datetime | None = None) -> Machine:
    return Machine(
        handle=Handle(InstanceId("ins_1"), ""), hostname="one", image="img_1", vcpus=1, ram_bytes=1, disk_bytes=1,
        network=network(1), address="", ports=(Port(0, 22),),
        rental=Rental(type="gpu", region="east", token=token, asked_at=asked_at),
    )  # fmt: skip


def test_template_is_a_driver_and_names_missing_methods(tmp_path: Path, clock: FixedClock) -> None:
    assert "_template" not in registry.kinds()
    key = tmp_path / "key"
    key.write_text("secret\n")
    opening = Opening(name="new", options={"key": f"file:{key}"}, folder=tmp_path, mark="m", clock=clock)
    opened: ComputeDriver = DRIVER.open(opening)
    for call in (opened.sightings, lambda: opened.create(machine()), lambda: opened.delete(machine().handle)):
        with pytest.raises(EngineRefused, match="template") as refused:
            call()
        assert "drivers/_template" in refused.value.hint
    with pytest.raises(BadInput, match="secret"):
        DRIVER.check("new", {"key": "abc"})
    with pytest.raises(BadInput, match="needs the secret"):
        DRIVER.open(replace(opening, options={"key": "env:NO_SUCH_VARIABLE"}))


def test_a_machine_is_rented_once(driver: FilledIn) -> None:
    first, second = driver.create(machine()), driver.create(machine())
    assert first == second
    assert (first.remote_id, first.zone, first.price_micros_per_hour) == ("m-1", "east-a", 9)
    assert len(driver.there) == 1


def test_lost_response_does_not_rent_twice(driver: FilledIn, clock: FixedClock) -> None:
    driver.loses_answers = True
    with pytest.raises(EngineDown):
        driver.create(machine())
    driver.loses_answers = False
    driver.unlisted.add("m-1")
    with pytest.raises(EngineBusy):
        driver.create(machine(asked_at=START))
    clock.move(timedelta(seconds=10))
    driver.unlisted.clear()
    assert driver.create(machine(asked_at=START)).remote_id == "m-1"
    driver.there.clear()
    clock.move(GRACE)
    assert driver.create(machine(asked_at=START)).remote_id == "m-1", (
        "it must be listed by now, so there is none"
    )


def test_a_machine_of_an_older_launch_is_given_back_first(driver: FilledIn) -> None:
    driver.create(machine("ins_1.1.0"))
    driver.create(machine("ins_1.4.0"))
    assert [each.token for each in driver.there.values()] == ["ins_1.4.0"]


def test_ready_returns_endpoints(driver: FilledIn, clock: FixedClock) -> None:
    with pytest.raises(EngineMissing):
        driver.ready(machine())
    assert "listed" in driver.ready(machine(asked_at=START)).doing
    driver.create(machine())
    assert driver.ready(machine()).doing == "booting"
    driver.there["m-1"] = replace(driver.there["m-1"], seen=Seen.RUNNING)
    assert not driver.ready(machine()).ready, "it has no address yet"
    there = replace(driver.there["m-1"], endpoints={22: Endpoint("192.0.2.7", 2222)}, user="ubuntu")
    driver.there["m-1"] = there
    readiness = driver.ready(machine())
    assert (readiness.ready, readiness.endpoints[22], readiness.user) == (
        True,
        Endpoint("192.0.2.7", 2222),
        "ubuntu",
    )
    driver.there["m-1"] = replace(there, seen=Seen.BROKEN)
    with pytest.raises(DoesNotBoot):
        driver.ready(machine())


def test_delete_gives_back_the_named_machine_or_all(driver: FilledIn) -> None:
    driver.create(machine())
    driver.there["m-9"] = replace(driver.there["m-1"], remote_id="m-9")
    driver.delete(Handle(InstanceId("ins_1"), "", "m-9"))
    assert set(driver.there) == {"m-1"}
    for _ in range(2):
        driver.delete(Handle(InstanceId("ins_1"), ""))
    assert (driver.there, list(driver.sightings()), driver.look(machine().handle)) == ({}, [], None)


def test_unsupported_calls_are_refused(driver: FilledIn) -> None:
    handle = machine().handle
    calls = (
        lambda: driver.stop(handle, force=True),
        lambda: driver.resize(machine()),
        lambda: driver.run(handle, ("true",), stdin=b"", seconds_max=1),
        lambda: driver.snapshot(handle, "snp_1"),
        lambda: driver.build_image("img_1", "base"),
        lambda: driver.publish(handle, "img_1"),
        lambda: driver.file(handle, "/"),
    )
    for call in calls:
        with pytest.raises(EngineRefused, match="does not support"):
            call()
    assert driver.capabilities == frozenset()
