"""Failures of the engine, and what they leave."""

import contextlib
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.engine.conftest import IMAGES, MIB, NETWORKS, MachineMaker, launched, seen_as
from tests.engine.sandbox import Sandbox
from tests.long import sampled

from teraflock.drivers.lxd import confinement, guest, names
from teraflock.drivers.lxd.driver import Lxd
from teraflock.drivers.lxd.errors import EngineMissing
from teraflock.drivers.lxd.names import Names
from teraflock.drivers.lxd.rest import LxdClient
from teraflock.drivers.lxd.setup import NotOurs, PoolWish
from teraflock.drivers.lxd.ssh import new_host_key
from teraflock.fleet.model import HostReport
from teraflock.instance.driver import Machine, Seen
from teraflock.instance.engine_errors import DoesNotBoot, EngineBusy, EngineDown, EngineRefused, NoRoom


def test_guests_survive_a_killed_daemon(driver: Lxd, sandbox: Sandbox, a_machine: MachineMaker) -> None:
    machine = a_machine()
    key = launched(driver, machine)
    before = driver.look(machine.handle)
    sandbox.daemon.kill()
    with pytest.raises(EngineDown):
        driver.look(machine.handle)
    sandbox.daemon.ensure()
    assert seen_as(driver, machine) == Seen.RUNNING
    after = driver.look(machine.handle)
    assert before
    assert after
    assert after.started_at == before.started_at, "it kept running, and is charged for that time"
    assert launched(driver, machine) == key
    other = a_machine()
    launched(driver, other)


def test_guests_stay_stopped_after_a_reboot(driver: Lxd, sandbox: Sandbox, a_machine: MachineMaker) -> None:
    machine = a_machine()
    key = launched(driver, machine)
    sandbox.daemon.stop()
    sandbox.daemon.ensure()
    assert seen_as(driver, machine) == Seen.STOPPED
    stopped = driver.look(machine.handle)
    assert stopped
    assert stopped.started_at is None
    driver.start(machine.handle)
    assert launched(driver, machine) == key


def test_abandoned_create_is_completed(driver: Lxd, client: LxdClient, a_machine: MachineMaker) -> None:
    machine = a_machine()
    driver.prepare(machine)
    begin_making(client, machine)  # the server that asked for it is dead
    until_done(lambda: driver.create(machine))
    assert launched(driver, machine), "the guest has a host key"


@pytest.mark.parametrize(
    "milliseconds", sampled([0, 20, 40, 70, 110, 160, 230], every=7, because="kills a daemon again and again")
)
def test_daemon_killed_during_create_or_delete(
    driver: Lxd, client: LxdClient, sandbox: Sandbox, a_machine: MachineMaker, milliseconds: int
) -> None:
    machine = a_machine()
    driver.prepare(machine)
    begin_making(client, machine)
    time.sleep(milliseconds / 1000)  # the moment is random, so several are tried
    sandbox.daemon.kill()
    sandbox.daemon.ensure()
    until_done(lambda: driver.create(machine))
    launched(driver, machine)
    driver.stop(machine.handle, force=True)
    with contextlib.suppress(EngineMissing):
        client.send("DELETE", "instances", names.guest(machine.id))
    time.sleep(milliseconds / 1000)
    sandbox.daemon.kill()
    sandbox.daemon.ensure()
    until_done(lambda: driver.delete(machine.handle))
    assert driver.look(machine.handle) is None
    volumes = client.get("storage-pools", client.project, "volumes", "container")
    assert not [each for each in volumes if each.endswith(names.guest(machine.id))]


def begin_making(client: LxdClient, machine: Machine) -> None:
    mould = next(
        each["name"] for each in client.get("instances", recursion=1) if each["name"].startswith("image-")
    )
    ours = Names(client.project.removeprefix("tera-"))
    host = guest.GuestHost(confined=confinement.settings(4000), server=client.server())
    body = guest.body(machine, ours, new_host_key(), mould, host)
    client.send("POST", "instances", body=body)


def until_done(act: Callable[[], None]) -> None:
    """Repeat while the engine is busy, as the server's loops do."""
    for _ in range(200):
        try:
            return act()
        except EngineBusy:
            time.sleep(0.05)
    raise AssertionError("still busy")


def test_drift_is_seen(driver: Lxd, client: LxdClient, a_machine: MachineMaker) -> None:
    machine = a_machine()
    launched(driver, machine)
    name = names.guest(machine.id)
    client.put("instances", name, "state", body={"action": "stop", "force": True, "timeout": 30})
    assert [each.seen for each in driver.sightings()] == [Seen.STOPPED]
    client.delete("instances", name)
    assert list(driver.sightings()) == []
    assert driver.look(machine.handle) is None


@pytest.mark.long("builds an image and waits for its guest")
def test_image_that_does_not_boot_is_reported(driver: Lxd, a_machine: MachineMaker) -> None:
    machine = a_machine()
    launched(driver, machine)
    driver.run(machine.handle, ("ln", "-sf", "/bin/true", "/sbin/init"), stdin=b"", seconds_max=10)
    driver.publish(machine.handle, "img_broken")
    broken = a_machine(image="img_broken")
    driver.prepare(broken)
    driver.create(broken)
    with pytest.raises((DoesNotBoot, EngineRefused)):  # noqa: PT012 how soon it ends is the guest's affair
        driver.start(broken.handle)
        for _ in range(10):
            assert not driver.ready(broken).ready
    driver.delete_image("img_broken")


def test_missing_image_is_refused(driver: Lxd, a_machine: MachineMaker) -> None:
    machine = a_machine(image="img_nowhere")
    driver.prepare(machine)
    with pytest.raises(EngineRefused, match="img_nowhere"):
        driver.create(machine)
    assert driver.look(machine.handle) is None


@pytest.mark.long("fills a pool")
def test_full_pool_is_reported_and_nothing_is_left(sandbox: Sandbox, base_image: Path) -> None:
    report = HostReport(name="here", address="198.51.100.1", vcpus=2, ram_bytes=1, disk_bytes=1)
    small = Lxd(
        sandbox.daemon.socket_path,
        "small",
        report=lambda: report,
        image_cache=IMAGES,
        now=lambda: 1,
        pool=PoolWish(size_bytes=200 * MIB),
        way_out=False,
    )
    with sandbox.inside():
        small.set_up()
        with pytest.raises(NoRoom):
            small.build_image("img_base", "base")
        assert small.images() == {}
        small.purge()
        small.close()


def test_purge_removes_ours_and_only_ours(
    sandbox: Sandbox, base_image: Path, a_machine: MachineMaker
) -> None:
    host = LxdClient(sandbox.daemon.socket_path)
    theirs = {"ipv4.address": "10.200.0.1/24", "ipv6.address": "none"}
    host.post("networks", body={"name": "tfffffffff", "type": "bridge", "config": theirs})
    report = HostReport(name="here", address="198.51.100.1", vcpus=2, ram_bytes=1, disk_bytes=1)
    mine = Lxd(
        sandbox.daemon.socket_path, "mine", report=lambda: report, image_cache=IMAGES, now=lambda: 1, way_out=False
    )  # fmt: skip
    with sandbox.inside():
        before = everything(host)
        mine.set_up()
        mine.build_image("img_base", "base")
        launched(mine, a_machine())
        assert everything(host) != before
        for _ in range(2):
            mine.purge()
        assert everything(host) == before
        mine.close()
    host.delete("networks", "tfffffffff")
    host.close()


def test_foreign_objects_are_not_changed(
    driver: Lxd, client: LxdClient, sandbox: Sandbox, a_machine: MachineMaker
) -> None:
    host = LxdClient(sandbox.daemon.socket_path)
    ours = Names(client.project.removeprefix("tera-"))
    name = ours.bridge(NETWORKS[1].project_id)
    theirs = {"ipv4.address": "10.201.0.1/24", "ipv6.address": "none"}
    host.post("networks", body={"name": name, "type": "bridge", "config": theirs})
    with pytest.raises(NotOurs):
        driver.prepare(a_machine(NETWORKS[1]))
    with pytest.raises(NotOurs):
        driver.retire(NETWORKS[1])
    assert host.get("networks", name)["config"]["ipv4.address"] == "10.201.0.1/24"
    host.delete("networks", name)
    with pytest.raises(EngineMissing):
        host.get("networks", name)
    host.close()


def everything(host: LxdClient) -> list[str]:
    """Return everything in the engine, and all tables of installations except the engine's own."""
    kinds = ("projects", "storage-pools", "networks", "images", "instances", "profiles")
    found = [address for kind in kinds for address in host.get(kind) if "uplink" not in address]
    listed = subprocess.run(["nft", "list", "tables"], capture_output=True, text=True, check=True)
    return sorted(found) + sorted(line for line in listed.stdout.splitlines() if "tera_" in line)
