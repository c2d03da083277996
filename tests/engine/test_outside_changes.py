"""Every change made outside Teraflock is detected, and a resize to the wanted values undoes it."""

from collections.abc import Callable, Mapping
from typing import Any

from tests.engine.conftest import GIB, MIB, MachineMaker, launched

from teraflock.drivers.lxd import names
from teraflock.drivers.lxd.driver import Lxd
from teraflock.drivers.lxd.rest import LxdClient
from teraflock.instance.driver import Sighting

Config = dict[str, str]
Devices = dict[str, dict[str, str]]


def unfiltered(config: Config, devices: Devices) -> None:
    devices["eth0"]["security.mac_filtering"] = "false"  # the other filter stays on in engines without DHCP


def a_device_more(config: Config, devices: Devices) -> None:
    devices["more"] = {"type": "unix-char", "source": "/dev/null", "path": "/dev/more"}


def set_to(key: str, value: str) -> Callable[[Config, Devices], None]:
    def change(config: Config, devices: Devices) -> None:
        config[key] = value

    return change


def a_larger_disk(config: Config, devices: Devices) -> None:
    devices["root"]["size"] = "3GiB"


CHANGES = {
    "processors": set_to("limits.cpu", "2"),
    "memory": set_to("limits.memory", "1GiB"),
    "processes": set_to("limits.processes", "17"),
    "disk": a_larger_disk,
    "filter": unfiltered,
    "device": a_device_more,
    "autostart": set_to("boot.autostart", "true"),
    "nesting": set_to("security.nesting", "true"),
}


def test_outside_changes_are_detected_and_undone(
    driver: Lxd, client: LxdClient, a_machine: MachineMaker
) -> None:
    machine = a_machine()
    launched(driver, machine)
    name = names.guest(machine.id)
    given, before = only(driver), configured(client, name)
    assert not given.altered
    for what, change in CHANGES.items():
        changed = client.get("instances", name)
        change(changed["config"], changed["devices"])
        client.put("instances", name, body=changed)
        assert only(driver).altered, what
        driver.resize(machine)
        assert only(driver) == given, what
        assert configured(client, name) == before, what
    told = driver.run(machine.handle, ("nproc",), stdin=b"", seconds_max=10).stdout
    assert told == b"1\n"
    assert driver.run(machine.handle, ("test", "-e", "/dev/more"), stdin=b"", seconds_max=10).exit_code == 1
    assert (given.vcpus, given.ram_bytes, given.disk_bytes, given.slots) == (1, 512 * MIB, 2 * GIB, ())


def only(driver: Lxd) -> Sighting:
    (sighting,) = driver.sightings()
    return sighting


def configured(client: LxdClient, name: str) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    found = client.get("instances", name)
    own = {key: value for key, value in found["config"].items() if not key.startswith("volatile.")}
    return own, found["devices"]
