"""Volumes when calls fail and processes are killed at any point: files are kept, and nothing is left over."""

from pathlib import Path

import pytest
from tests.faults.data_installation import DataInstallation
from tests.faults.run_installation import BEGAN

from teraflock.base.errors import NotFound
from teraflock.base.quantities import GIB
from teraflock.drivers.simulated.faults import Kind, SimulatedFault, When
from teraflock.drivers.simulated.model import SimulatedVolume
from teraflock.instance.driver import Handle
from teraflock.instance.model import Instance
from teraflock.instance.orders import Order
from teraflock.instance.states import Phase
from teraflock.instance.volume.model import ShownVolume

CALLS = (
    "volumes", "create_volume", "attach_volume", "detach_volume", "snapshot_volume", "restore_volume",
    "delete_volume_snapshot", "delete_volume", "create", "delete",
)  # fmt: skip


class VolumeDesk:
    def __init__(self, installation: DataInstallation) -> None:
        self.installation = installation
        self.volumes = installation.service.volumes
        self.actor, self.project = installation.tenant.actor, installation.tenant.project

    def settle(self) -> None:
        for _ in range(8):
            self.installation.turn(2)

    def launch(self, name: str, *volumes: str) -> Instance:
        (made,) = self.installation.service.launch(
            self.actor, self.project, Order(name=name, volumes=volumes)
        )
        self.settle()
        return self.installation.service.view(self.project.id, made.id).instance

    def shown(self) -> ShownVolume:
        return self.volumes.volume(self.project, "disk")

    def words(self, name: str, *command: str, stdin: bytes = b"") -> bytes:
        found = self.installation.service.view(self.project.id, name)
        handle = Handle(found.instance.id, found.host_name or "")
        return self.installation.engine.run(handle, command, stdin=stdin, seconds_max=5).stdout

    def on_engine(self) -> list[SimulatedVolume]:
        with self.installation.world.read() as turn:
            return turn.every(SimulatedVolume)


@pytest.fixture
def desk(tmp_path: Path) -> VolumeDesk:
    return VolumeDesk(DataInstallation.in_memory(BEGAN, tmp_path))


@pytest.mark.parametrize("when", list(When))
@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize(
    "kind", [Kind.KILLED, pytest.param(Kind.FAILED, marks=pytest.mark.long("a second kind of fault"))]
)
def test_files_survive_and_nothing_is_left_over(desk: VolumeDesk, call: str, when: When, kind: Kind) -> None:
    desk.volumes.create(desk.actor, desk.project, "disk", GIB)
    desk.launch("first")
    desk.installation.trouble.faults(SimulatedFault(call=call, when=when, kind=kind))
    desk.volumes.attach(desk.actor, desk.project, "disk", "first", "")
    desk.settle()
    handle = f"{desk.shown().volume.path}/kept"
    desk.words("first", "tee", handle, stdin=b"one")
    desk.volumes.snapshot(desk.actor, desk.project, "disk", "before")
    desk.settle()
    assert [each.state for each in desk.shown().snapshots] == ["ready"]
    desk.words("first", "tee", handle, stdin=b"two")
    desk.installation.service.delete(desk.actor, desk.project, "first")
    desk.settle()
    assert (desk.shown().volume.state, desk.shown().instance) == ("free", "")
    desk.volumes.restore(desk.actor, desk.project, "disk", "before")
    desk.settle()
    second = desk.launch("second", "disk:/mnt/again")
    assert second.phase == Phase.RUNNING, second.problem
    assert desk.words("second", "cat", "/mnt/again/kept") == b"one"
    desk.volumes.delete_snapshot(desk.actor, desk.project, "disk", "before")
    desk.volumes.detach(desk.actor, desk.project, "disk")
    desk.settle()
    assert (desk.shown().volume.state, desk.shown().snapshots) == ("free", ())
    desk.volumes.delete(desk.actor, desk.project, "disk")
    desk.settle()
    with pytest.raises(NotFound):
        desk.shown()
    assert desk.on_engine() == []
