"""Projects: where instances, images and networks belong. Each has a network number no other project has."""

from typing import Final

from msgspec.structs import replace

from teraflock.base.errors import Conflict, NotFound, Refused
from teraflock.base.ids import new_id
from teraflock.base.quantities import count_text
from teraflock.storage.database import Transaction
from teraflock.tenant import rules
from teraflock.tenant.acts import Acts
from teraflock.tenant.model import Actor, OrganisationId, Project, ProjectId, Quota
from teraflock.tenant.names import check_name
from teraflock.tenant.project import store
from teraflock.tenant.rules import Permission

DEFAULT_PROJECT: Final = "default"
NETWORKS_MAX: Final = 2_048
"""Each project has one; their numbers begin at 0. As many as network/rules.py has room for, held equal by a test."""


class Projects(Acts):
    def page(
        self, actor: Actor, *, organisation: OrganisationId | None = None, after: str = "", limit: int
    ) -> tuple[Project, ...]:
        """Those the actor reaches; of another organisation: for operators."""
        home = organisation or actor.organisation_id
        only = rules.projects_in(actor, Permission.PROJECT_READ, home)
        with self._database.read() as tx:
            return store.projects(tx, home, only, after=after, limit=limit)

    def show(self, actor: Actor, ref: str | None) -> Project:
        """By id or name; None: the key's own, else the only one the actor reaches, else `default`."""
        with self._database.read() as tx:
            return project_in(tx, actor, ref)

    def make(
        self,
        actor: Actor,
        name: str,
        quota: Quota | None = None,
        *,
        organisation: OrganisationId | None = None,
    ) -> Project:
        """A quota is the operators' to give: without that right, a project is made with none set."""
        home = organisation or actor.organisation_id
        held = rules.in_organisation(actor, home)
        rules.check_held(Permission.PROJECT_WRITE, held)
        if quota not in (None, Quota()):
            rules.check_held(Permission.QUOTA_WRITE, held)
        check_name("a project", name)

        return self._database.write(lambda tx: self._made(tx, actor, home, name, quota or Quota()))

    def set_quota(self, actor: Actor, ref: str, quota: Quota) -> Project:
        def work(tx: Transaction) -> Project:
            project = project_in(tx, actor, ref)
            rules.require(actor, Permission.QUOTA_WRITE, project)
            store.set_quota(tx, project.id, quota)
            self._audit.record(tx, actor, "quota.set", project.id, project, **_told(quota))
            return replace(project, quota=quota)

        return self._database.write(work)

    def remove(self, actor: Actor, ref: str) -> Project:
        """Only when it is empty. Roles in it and keys for it go with it."""

        def work(tx: Transaction) -> Project:
            project = project_in(tx, actor, ref)
            rules.require(actor, Permission.PROJECT_WRITE, project)
            instances, images = store.contents(tx, project.id)
            if instances or images:
                held = f"{count_text(instances, 'instance')} and {count_text(images, 'image')}"
                raise Refused(
                    f"Project `{project.name}` still has {held}",
                    hint="Delete them first: they would be lost",
                )
            store.remove_project(tx, project.id, self._clock.now())
            self._audit.record(tx, actor, "project.remove", project.id, project, name=project.name)
            return project

        return self._database.write(work)

    def _made(self, tx: Transaction, actor: Actor, home: OrganisationId, name: str, quota: Quota) -> Project:
        if store.project(tx, home, name) is not None:
            raise Conflict(f"There is a project `{name}` already", hint="Choose another name")
        self._check_there(tx, actor, home)
        now = self._clock.now()
        project = Project(
            id=ProjectId(new_id("prj", now, self._random_bytes)),
            organisation_id=home,
            name=name,
            quota=quota,
            network_number=next_network(tx),
            created_at=now,
        )
        store.put_project(tx, project)
        self._audit.record(tx, actor, "project.make", project.id, project, name=name, **_told(quota))
        return project


def project_in(tx: Transaction, actor: Actor, ref: str | None) -> Project:
    """The project meant, if the actor reaches it. Nobody is told whether it exists elsewhere."""
    found = _meant(tx, actor) if ref is None else store.project(tx, actor.organisation_id, ref)
    if found is None and ref is not None and actor.is_operator:
        found = store.project_of_any_organisation(tx, ref)
    if found is None or not rules.in_project(actor, found):
        if ref is None:
            raise NotFound(
                "It is not clear which project is meant",
                hint="Name one with `--project`; `tera project list` has those this key reaches",
            )
        raise NotFound("There is no such project", hint="`tera project list` has those this key reaches")
    return found


def next_network(tx: Transaction) -> int:
    """The lowest free number. Two makers at once: one of them is run again, for all writes are serialisable."""
    number = store.free_network_in_all_projects(tx)
    if number >= NETWORKS_MAX:
        raise Refused(
            f"All {NETWORKS_MAX} networks are taken", hint="Remove projects that are not used any more"
        )
    return number


def _meant(tx: Transaction, actor: Actor) -> Project | None:
    """The project of an actor who names none."""
    if actor.project_id:
        return store.project(tx, actor.organisation_id, actor.project_id)
    only = None if "" in actor.roles else tuple(actor.roles)
    reached = store.projects_with_default_first(tx, actor.organisation_id, DEFAULT_PROJECT, only, limit=2)
    if len(reached) == 1 or (reached and reached[0].name == DEFAULT_PROJECT):
        return reached[0]
    return None


def _told(quota: Quota) -> dict[str, int | None]:
    """A quota as details of the audit log, which are flat."""
    limits = {name: getattr(quota, name) for name in ("instances", "vcpus", "ram_bytes", "disk_bytes")}
    gpus = {f"gpus.{gpu}": number for gpu, number in quota.gpus.items()}
    return {
        name: number
        for name, number in {**limits, "gpus_default": quota.gpus_default, **gpus}.items()
        if number is not None
    }
