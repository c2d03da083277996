"""Datasets when processes are killed at any point: instances read the right data, and nothing is left over."""

from datetime import timedelta
from pathlib import Path

import pytest
from tests.faults.data_installation import DataInstallation
from tests.faults.run_installation import BEGAN

from teraflock.base.errors import NotFound
from teraflock.dataset.model import DatasetState
from teraflock.drivers.simulated.faults import Kind, SimulatedFault, When
from teraflock.drivers.simulated.model import SimulatedDataset
from teraflock.drivers.simulated.world import MemoryWorld
from teraflock.instance.orders import Order
from teraflock.instance.states import Phase
from teraflock.run.states import RunPhase

FILES = {"a/text": b"hello\n", "b": bytes(range(256)) * 20, "c": b""}
CALLS = ("datasets", "receive_dataset", "unpack_dataset", "delete_dataset", "create")


@pytest.fixture
def installation(tmp_path: Path) -> DataInstallation:
    return DataInstallation.in_memory(BEGAN, tmp_path)


def copies(installation: DataInstallation) -> list[SimulatedDataset]:
    with installation.world.read() as turn:
        return turn.every(SimulatedDataset)


@pytest.mark.parametrize("when", list(When))
@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize(
    "kind", [Kind.KILLED, pytest.param(Kind.ENGINE_DOWN, marks=pytest.mark.long("a second kind of fault"))]
)
def test_run_reads_its_data_and_nothing_is_left_over(
    installation: DataInstallation, call: str, when: When, kind: Kind
) -> None:
    dataset = installation.push("corpus", FILES)
    installation.trouble.faults(SimulatedFault(call=call, when=when, kind=kind, times=2))
    run = installation.finish(installation.ask("cat", "/data/corpus/a/text", data=("corpus",)))
    assert (run.phase, installation.text(run)) == (RunPhase.DONE, "hello\n")
    assert len(copies(installation)) == 1
    installation.datasets.delete(installation.tenant.actor, installation.tenant.project, "corpus")
    for _ in range(10):
        installation.turn()
    assert copies(installation) == []
    assert not (installation.folder.parent / "datasets" / dataset.id).exists()
    with pytest.raises(NotFound):
        installation.datasets.dataset(installation.tenant.project, "corpus")


def test_instances_on_one_host_share_a_copy(installation: DataInstallation) -> None:
    installation.push("corpus", FILES)
    actor, project = installation.tenant.actor, installation.tenant.project
    order = Order(data=("corpus", "corpus"), instances=2)
    made = installation.service.launch(actor, project, order)
    for _ in range(10):
        installation.turn()
    seen = [installation.service.view(project.id, each.id).instance for each in made]
    assert {each.phase for each in seen} == {Phase.RUNNING}
    assert len(copies(installation)) == len({each.host_id for each in seen})
    assert [each.name for each in seen[0].spec.data] == ["corpus"]


def test_data_is_copied_to_a_rented_machine(tmp_path: Path) -> None:
    rented = DataInstallation.in_memory(BEGAN, tmp_path, sky=MemoryWorld())
    rented.push("corpus", FILES)
    run = rented.finish(
        rented.ask("cat", "/data/corpus/a/text", data=("corpus",), site="sky", type="cpu", region="east")
    )
    assert (run.phase, rented.text(run)) == (RunPhase.DONE, "hello\n")


def test_abandoned_upload_and_folder_without_a_row_are_removed(installation: DataInstallation) -> None:
    dataset = installation.announce("corpus", FILES)
    assert dataset.state == DatasetState.UPLOADING
    kept = installation.folder.parent / "datasets"
    installation.stored.keep_manifest("dat_killed", b"{}")
    installation.data_loop.sweep()
    assert (kept / "dat_killed").exists(), "it may belong to a push in progress"
    installation.clock.move(timedelta(days=3650))
    installation.turn()
    installation.turn()
    with pytest.raises(NotFound):
        installation.datasets.dataset(installation.tenant.project, "corpus")
    installation.data_loop.sweep()
    assert list(kept.iterdir()) == []
