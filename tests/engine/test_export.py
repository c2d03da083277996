"""An instance exported from a real engine is imported with all its data."""

from pathlib import Path

import pytest
from tests.engine.conftest import INSTALLATION, MachineMaker
from tests.engine.sandbox import Sandbox

from teraflock.drivers.lxd import export
from teraflock.drivers.lxd.driver import Lxd
from teraflock.drivers.lxd.names import Names, guest
from teraflock.drivers.lxd.rest import LxdClient
from teraflock.instance.driver import Seen


@pytest.mark.long("packs and unpacks a whole disk")
def test_an_exported_instance_comes_back_with_its_data(
    driver: Lxd, sandbox: Sandbox, a_machine: MachineMaker, tmp_path: Path
) -> None:
    machine, ours = a_machine(), Names(INSTALLATION)
    driver.prepare(machine)
    driver.create(machine)
    driver.start(machine.handle)
    assert (
        driver.run(
            machine.handle, ["sh", "-c", "echo kept > /root/data; sync"], stdin=b"", seconds_max=30
        ).exit_code
        == 0
    )
    driver.snapshot(machine.handle, "snp_1")
    engine, name = LxdClient(sandbox.daemon.socket_path, project=ours.project), guest(machine.id)
    pieces = export.exported(engine, name)
    assert pieces is not None
    file = tmp_path / "disk"
    with file.open("wb") as target:
        target.writelines(pieces)
    assert file.stat().st_size > 1 << 20
    assert engine.get("instances", name, "backups") in ([], None), "the engine's temporary copy is removed"
    assert not export.imported(engine, ours, name, file), "an existing instance is not changed"
    driver.stop(machine.handle, force=True)
    driver.delete(machine.handle)
    assert export.exported(engine, name) is None
    assert export.imported(engine, ours, name, file)
    driver.start(machine.handle)
    assert [each.seen for each in driver.sightings()] == [Seen.RUNNING]
    assert driver.run(machine.handle, ["cat", "/root/data"], stdin=b"", seconds_max=30).stdout == b"kept\n"
    assert [each["name"] for each in engine.get("instances", name, "snapshots", recursion=1)]
    driver.stop(machine.handle, force=True)
    driver.delete(machine.handle)
    engine.close()
