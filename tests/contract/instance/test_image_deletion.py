"""An image that is deleted while it is made, or twice, and one that an engine refuses to delete."""

from datetime import UTC, datetime

import pytest
from tests.faults.installation import Installation

from teraflock.base.clock import FixedClock
from teraflock.drivers.simulated.faults import FOREVER, Kind, SimulatedFault
from teraflock.drivers.simulated.world import MemoryWorld
from teraflock.image import store
from teraflock.image.model import Image, ImageState
from teraflock.instance.driver import Handle
from teraflock.instance.orders import Order
from teraflock.storage.database import Database


@pytest.fixture
def installation(database: Database) -> Installation:
    return Installation(database, MemoryWorld(), FixedClock(datetime(2026, 11, 15, tzinfo=UTC)))


def build(installation: Installation, name: str) -> Image:
    tenant = installation.tenant
    return installation.images.build(tenant.actor, tenant.project, name, "base")


def delete(installation: Installation, image: Image) -> None:
    tenant = installation.tenant
    installation.images.delete(tenant.actor, tenant.project, image.id)


def kept(installation: Installation, image: Image) -> Image | None:
    with installation.database.read() as tx:
        return store.by_id_in_all_projects(tx, image.id)


def deletions(installation: Installation) -> int:
    with installation.database.read() as tx:
        return len(tx.all("SELECT 1 FROM audit WHERE action = 'image.delete'"))


def test_an_image_that_is_deleted_while_it_is_built_is_removed(
    installation: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine, loop = installation.engine, installation.workers[0].images
    image = build(installation, "mine")
    build_image = engine.build_image

    def build_while_it_is_deleted(id: str, recipe: str) -> None:
        build_image(id, recipe)
        delete(installation, image)

    monkeypatch.setattr(engine, "build_image", build_while_it_is_deleted)
    loop.turn()
    monkeypatch.undo()
    loop.turn()
    assert kept(installation, image) is None
    assert image.id not in engine.images()


def test_an_image_that_another_server_removes_while_it_is_built_leaves_nothing(
    installation: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine, (ours, theirs) = installation.engine, installation.workers
    image = build(installation, "mine")
    build_image = engine.build_image

    def build_while_it_is_removed(id: str, recipe: str) -> None:
        delete(installation, image)
        theirs.images.turn()
        build_image(id, recipe)

    monkeypatch.setattr(engine, "build_image", build_while_it_is_removed)
    ours.images.turn()
    monkeypatch.undo()
    assert kept(installation, image) is None
    assert image.id not in engine.images()


@pytest.mark.parametrize("begun", [False, True])
def test_an_image_that_is_deleted_while_it_is_made_from_an_instance_leaves_nothing(
    installation: Installation, monkeypatch: pytest.MonkeyPatch, begun: bool
) -> None:
    engine, tenant = installation.engine, installation.tenant
    installation.service.launch(tenant.actor, tenant.project, Order(name="one"))
    installation.settle()
    ours, theirs = installation.workers
    image = installation.images.from_instance(tenant.actor, tenant.project, "mine", "one")
    publish = engine.publish

    def publish_while_it_is_deleted(handle: Handle, id: str) -> None:
        delete(installation, image)
        theirs.images.turn()
        publish(handle, id)

    if begun:
        monkeypatch.setattr(engine, "publish", publish_while_it_is_deleted)
    else:
        delete(installation, image)
        theirs.images.turn()
    ours.turn()
    monkeypatch.undo()
    installation.settle()
    assert kept(installation, image) is None
    assert image.id not in engine.images()


def test_an_image_that_an_engine_refuses_to_delete_is_deleted_later(installation: Installation) -> None:
    loop = installation.workers[0].images
    image = build(installation, "mine")
    loop.turn()
    installation.trouble.faults(SimulatedFault(call="delete_image", kind=Kind.REFUSED, times=FOREVER))
    delete(installation, image)
    loop.turn()
    left = kept(installation, image)
    assert left is not None
    assert left.state == ImageState.DELETING
    installation.trouble.no_more_faults()
    loop.turn()
    assert kept(installation, image) is None


def test_a_second_deletion_changes_nothing(installation: Installation) -> None:
    image = build(installation, "mine")
    delete(installation, image)
    delete(installation, image)
    assert deletions(installation) == 1
