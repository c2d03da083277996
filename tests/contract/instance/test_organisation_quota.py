"""The quota of an organisation limits the sum over its projects, on both databases and under concurrent requests."""

from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from threading import Barrier, Thread
from typing import Any

import pytest
from tests.faults.installation import Installation

from teraflock.base.clock import FixedClock
from teraflock.base.errors import BadInput, Forbidden, NotFound, QuotaReached, TeraflockError
from teraflock.base.quantities import GIB
from teraflock.drivers.simulated.world import MemoryWorld
from teraflock.image.model import ImageState
from teraflock.image.store import kept_bytes, move
from teraflock.instance.orders import Order, ShapeWish
from teraflock.instance.states import Phase
from teraflock.storage.database import Database
from teraflock.tenant.model import Actor, Defaults, OrganisationQuota, Project, Quota, Role
from teraflock.tenant.service import TenantService

SMALL = ShapeWish(vcpus=1, ram_bytes=GIB, disk_bytes=2 * GIB)
DEFAULTS = Defaults(
    organisation=OrganisationQuota(projects=4, instances=6, gpus_default=2, images_bytes=10 * GIB),
    project=Quota(instances=5, vcpus=9, gpus_default=1),
)


class Firm:
    """An organisation with the default quotas and an owner, in addition to the operator's own."""

    def __init__(self, database: Database) -> None:
        self.installation = Installation(
            database, MemoryWorld(), FixedClock(datetime(2026, 11, 15, tzinfo=UTC))
        )
        self.operator = self.installation.tenant.actor
        self.tenants = TenantService(
            database, self.installation.clock, self.installation.random_bytes, DEFAULTS
        )
        made = self.tenants.organisations.make(self.operator, "firm", "ann")
        self.id = made.organisation.id
        self.ann: Actor = self.tenants.authenticate(made.key.secret)
        self.default: Project = made.project

    def project(self, name: str, quota: Quota | None = None) -> Project:
        return self.tenants.projects.make(self.ann, name, quota)

    def launch(self, project: Project, instances: int = 1, shape: ShapeWish = SMALL) -> None:
        self.installation.service.launch(self.ann, project, Order(shape=shape, instances=instances))

    def set_quota(self, **limits: Any) -> None:
        self.tenants.organisations.set_quota(self.operator, self.id, OrganisationQuota(**limits))


@pytest.fixture
def firm(database: Database) -> Firm:
    return Firm(database)


def at_once(works: list[Callable[[], object]]) -> list[TeraflockError]:
    """The errors of calls that all begin at the same moment."""
    barrier = Barrier(len(works))
    errors: list[TeraflockError] = []

    def run(work: Callable[[], object]) -> None:
        barrier.wait()
        try:
            work()
        except TeraflockError as error:
            errors.append(error)

    threads = [Thread(target=run, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return errors


def test_new_organisations_and_projects_get_the_default_quotas(firm: Firm) -> None:
    assert firm.tenants.organisations.quota(firm.id) == DEFAULTS.organisation
    assert firm.default.quota == DEFAULTS.project
    assert firm.project("lab").quota == DEFAULTS.project
    assert firm.project("hall", Quota(instances=2)).quota == Quota(instances=2, vcpus=9, gpus_default=1)
    own = firm.tenants.organisations.quota(firm.operator.organisation_id)
    assert own == OrganisationQuota(), "the operator's own organisation has no limit"


def test_another_project_does_not_escape_the_quota(firm: Firm) -> None:
    lab = firm.project("lab")
    firm.launch(firm.default, 4)
    firm.launch(lab, 2)
    with pytest.raises(QuotaReached, match="organisation `firm` allows 6 instances; this would need 7"):
        firm.launch(firm.project("bypass"))
    assert firm.installation.service.usage_of_organisation(firm.id).instances == 6


def test_quota_of_an_organisation_holds_under_concurrent_launches(firm: Firm) -> None:
    projects = [firm.default, firm.project("one"), firm.project("two")]
    errors = at_once([partial(firm.launch, project) for project in projects for _ in range(4)])
    assert [type(error) for error in errors] == [QuotaReached] * 6
    assert firm.installation.service.usage_of_organisation(firm.id).instances == 6


def test_number_of_projects_holds_under_concurrent_requests(firm: Firm) -> None:
    errors = at_once([partial(firm.project, f"p{number}") for number in range(8)])
    assert [type(error) for error in errors] == [QuotaReached] * 5
    assert firm.installation.service.usage_of_organisation(firm.id).projects == 4
    with pytest.raises(QuotaReached, match="allows 4 projects"):
        firm.tenants.projects.make(firm.operator, "more", organisation=firm.id)
    firm.set_quota(projects=5)
    firm.project("more")


def test_gpus_are_counted_over_all_projects_by_model(firm: Firm) -> None:
    card = ShapeWish(gpu="V100", gpus=1, vcpus=1)
    firm.launch(firm.default, shape=card)
    firm.launch(firm.project("lab"), shape=card)
    with pytest.raises(
        QuotaReached, match="organisation `firm` allows 2 GPUs `V100-SXM2`; this would need 3"
    ):
        firm.launch(firm.project("hall"), shape=card)


def test_resize_respects_the_organisations_quota(firm: Firm) -> None:
    firm.launch(firm.default, 2)
    firm.installation.settle()
    first, second = (view.instance for view in firm.installation.service.page(firm.default.id, limit=9))
    firm.set_quota(vcpus=3)
    with pytest.raises(QuotaReached, match="organisation `firm` allows 3 vCPUs; this would need 4"):
        firm.installation.service.resize(firm.ann, firm.default, first.id, ShapeWish(vcpus=3))
    firm.installation.service.resize(firm.ann, firm.default, first.id, ShapeWish(vcpus=2))
    firm.installation.settle()
    firm.set_quota(vcpus=1, instances=1)
    shrunk = firm.installation.service.resize(firm.ann, firm.default, first.id, ShapeWish(vcpus=1))
    assert shrunk.shape.vcpus == 1, "an instance may shrink when the quota is exceeded"
    firm.installation.settle()
    firm.installation.service.stop(firm.ann, firm.default, second.id)
    firm.installation.settle()
    started = firm.installation.service.start(firm.ann, firm.default, second.id)
    assert started.phase == Phase.STOPPED, (
        "a stopped instance counts all along, so starting it takes nothing more"
    )


def test_snapshots_respect_the_organisations_quota(firm: Firm) -> None:
    firm.launch(firm.default)
    firm.installation.settle()
    name = firm.installation.service.page(firm.default.id, limit=1)[0].instance.id
    firm.set_quota(disk_bytes=GIB)
    with pytest.raises(QuotaReached, match="organisation `firm` allows 1 GB of disk; 2 GB in use"):
        firm.installation.service.snapshots.create(firm.ann, firm.default, name, "before")
    firm.set_quota(disk_bytes=2 * GIB)
    firm.installation.service.snapshots.create(firm.ann, firm.default, name, "before")


def test_images_respect_both_quotas(firm: Firm) -> None:
    firm.launch(firm.default, 2)
    firm.installation.settle()
    first, second = (view.instance.id for view in firm.installation.service.page(firm.default.id, limit=9))
    images, database = firm.installation.images, firm.installation.database
    firm.set_quota(images_bytes=2 * GIB)
    image = images.from_instance(firm.ann, firm.default, "one", first)
    with database.read() as tx:
        assert kept_bytes(tx, firm.default.id) == 2 * GIB, "an unfinished image counts as the whole disk"
    with pytest.raises(QuotaReached, match="organisation `firm` allows 2 GB of images"):
        images.from_instance(firm.ann, firm.default, "two", second)
    database.write(lambda tx: move(tx, image.id, ImageState.READY, size_bytes=GIB))
    images.from_instance(firm.ann, firm.default, "two", second)
    firm.tenants.projects.set_quota(firm.ann, "default", Quota(images_bytes=0))
    with pytest.raises(QuotaReached, match="project `default` allows 0 GB of images"):
        images.build(firm.ann, firm.tenants.projects.show(firm.ann, "default"), "three", "jupyter")


def test_an_owner_sets_project_quotas_within_the_organisations(firm: Firm) -> None:
    quota = firm.tenants.projects.set_quota(firm.ann, "default", Quota(instances=6)).quota
    assert quota == Quota(instances=6)
    for too_much in (Quota(instances=7), Quota(gpus={"V100-SXM2": 3}), Quota(gpus_default=3)):
        for who in (firm.ann, firm.operator):
            with pytest.raises(BadInput, match="quota of organisation `firm` allows"):
                firm.tenants.projects.set_quota(who, firm.default.id, too_much)
        with pytest.raises(BadInput, match="quota of organisation `firm` allows"):
            firm.project("rich", too_much)
    with pytest.raises(Forbidden):
        firm.tenants.organisations.set_quota(firm.ann, firm.id, OrganisationQuota())


def test_an_owner_of_one_project_does_not_set_its_quota(firm: Firm) -> None:
    firm.project("lab")
    firm.tenants.members.make(firm.ann, "bob", Role.OWNER, "lab")
    bob = firm.tenants.authenticate(firm.tenants.keys.make(firm.ann, "k", member="bob").secret)
    with pytest.raises(Forbidden, match="whole organisation"):
        firm.tenants.projects.set_quota(bob, "lab", Quota())


def test_other_organisation_is_invisible(firm: Firm) -> None:
    eve = firm.tenants.authenticate(firm.tenants.organisations.make(firm.operator, "other", "eve").key.secret)
    organisations = firm.tenants.organisations
    for ref in ("firm", firm.id, "nowhere"):
        with pytest.raises(NotFound):
            organisations.find(eve, ref)
    assert organisations.find(firm.operator, "firm").id == organisations.find(firm.ann, firm.id).id
