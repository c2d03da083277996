"""A guest that draws finds its libraries, and the files for the loaders of EGL and Vulkan. This needs no card."""

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from tests.unit.drivers.lxd.test_nvidia import install, listing

from teraflock.drivers.lxd import confinement, guest, names, nvidia
from teraflock.drivers.lxd.driver import Lxd
from teraflock.drivers.lxd.names import Names
from teraflock.drivers.lxd.rest import LxdClient
from teraflock.fleet.model import GpuKind
from teraflock.instance.driver import GpuSlot, Machine


def test_a_guest_finds_the_libraries_that_draw(
    driver: Lxd, red: Machine, client: LxdClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed = tmp_path / "installed"
    installed.mkdir()
    install(installed, "580.1")
    monkeypatch.setattr(nvidia, "_listing", lambda: listing(installed))
    folder = nvidia.keep(tmp_path / "kept", graphics=True)
    disks = _disks(red, str(folder))
    driver.stop(red.handle, force=True)
    name = names.guest(red.id)
    client.patch("instances", name, body={"devices": {**client.get("instances", name)["devices"], **disks}})
    driver.start(red.handle)
    for file, path in nvidia.ICDS.items():
        assert _said(driver, red, "cat", path) == (folder / file).read_text()
        assert "Read-only" in _said(
            driver, red, "sh", "-c", f"echo changed 2>&1 > {path}; rm {path} 2>&1 || true"
        )
    assert "libEGL_nvidia of 580.1" in _said(driver, red, "cat", "/usr/local/nvidia/lib/libEGL_nvidia.so.0")


def _disks(machine: Machine, folder: str) -> dict[str, Any]:
    """The devices of a guest that draws, without its card."""
    host = guest.GuestHost(confined=confinement.settings(7), driver=folder)
    card = GpuSlot("0000:41:00.0", GpuKind.PHYSICAL)
    drawing = replace(machine, graphics=True, gpus=(card,))
    return {
        name: device
        for name, device in guest.devices(drawing, Names("test01"), host).items()
        if device["type"] == "disk" and name != "root"
    }


def _said(driver: Lxd, machine: Machine, *command: str) -> str:
    done = driver.run(machine.handle, command, stdin=b"", seconds_max=10)
    return (done.stdout + done.stderr).decode()
