"""Projects: where instances, images and networks belong.

A project gets a network number, which no other has, with its first instance: projects alone use up no networks.
"""

from typing import Final

from msgspec.structs import replace

from teraflock.base.errors import Conflict, NotFound, Refused, ambiguous_name, not_found, suggestion
from teraflock.base.ids import new_id
from teraflock.base.quantities import count_text
from teraflock.storage.database import Transaction
from teraflock.tenant import rules
from teraflock.tenant.acts import Acts
from teraflock.tenant.model import Actor, OrganisationId, Project, ProjectId, Quota
from teraflock.tenant.names import check_name
from teraflock.tenant.organisation.rules import NAMES_MAX, check_active
from teraflock.tenant.organisation.rules import found as found_organisation
from teraflock.tenant.project import store
from teraflock.tenant.quota import rules as quotas
from teraflock.tenant.quota.rules import Amounts
from teraflock.tenant.quota.store import count_projects, name_and_quota
from teraflock.tenant.rules import Permission

DEFAULT_PROJECT: Final = "default"
OPTIONS_MAX: Final = 10
"""Listed where a name is ambiguous."""
NETWORKS_MAX: Final = 2_048
"""Their numbers begin at 0. As many as network/rules.py has room for, held equal by a test."""
NETWORKS_KEPT: Final = 64
"""The last ones, which only an operator's instances get: tenants cannot lock the operator out."""
_WHOLE: Final = " in the whole organisation"
NO_NETWORK: Final = -1
"""Of a project in which nothing was launched yet."""


class Projects(Acts):
    def page(
        self, actor: Actor, *, organisation: OrganisationId | None = None, after: str = "", limit: int
    ) -> tuple[Project, ...]:
        """Those the actor reaches; of another organisation: for operators."""
        home = organisation or actor.organisation_id
        only = rules.projects_in(actor, Permission.PROJECT_READ, home)
        with self._database.read() as tx:
            return store.projects(tx, home, only, after=after, limit=limit)

    def show(self, actor: Actor, ref: str | None, *, removed: bool = False) -> Project:
        """By id or name; None: the key's own, else the only one the actor reaches, else `default`.

        `removed`: for operators also one that was removed, whose bills are still there.
        """
        with self._database.read() as tx:
            return project_in(tx, actor, ref, removed=removed)

    def make(
        self,
        actor: Actor,
        name: str,
        quota: Quota | None = None,
        *,
        organisation: OrganisationId | None = None,
    ) -> Project:
        """Limits that are left out of the quota are those of new projects."""
        home = organisation or actor.organisation_id
        held = rules.in_organisation(actor, home)
        rules.check_held(Permission.PROJECT_WRITE, held)
        if quota not in (None, Quota()):
            rules.check_held(Permission.QUOTA_WRITE, held)
        check_name("a project", name)

        return self._database.write(lambda tx: self._made(tx, actor, home, name, quota or Quota()))

    def set_quota(self, actor: Actor, ref: str, quota: Quota) -> Project:
        """Within the organisation's. An owner of this project alone may not: its limits are set from above."""

        def work(tx: Transaction) -> Project:
            project = project_in(tx, actor, ref)
            rules.require(actor, Permission.QUOTA_WRITE, project)
            home = project.organisation_id
            rules.check_held(Permission.QUOTA_WRITE, rules.in_organisation(actor, home), _WHOLE)
            name, wall = name_and_quota(tx, home)
            quotas.check_within(quota, wall, of=f"organisation `{name}`")
            store.set_quota(tx, project.id, quota)
            self._audit.record(tx, actor, "quota.set", project.id, project, **quotas.flat(quota))
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

    def _made(self, tx: Transaction, actor: Actor, home: OrganisationId, name: str, given: Quota) -> Project:
        self._check_there(tx, actor, home)
        check_active(tx, home)
        if store.project(tx, home, name) is not None:
            raise Conflict(f"There is a project `{name}` already", hint="Choose another name")
        quota = self._allowed_one_more(tx, home, given)
        now = self._clock.now()
        project = Project(
            id=ProjectId(new_id("prj", now, self._random_bytes)),
            organisation_id=home,
            name=name,
            quota=quota,
            network_number=NO_NETWORK,
            created_at=now,
        )
        store.put_project(tx, project)
        self._audit.record(tx, actor, "project.make", project.id, project, name=name, **quotas.flat(quota))
        return project

    def _allowed_one_more(self, tx: Transaction, home: OrganisationId, given: Quota) -> Quota:
        """The quota of a new project, where its organisation may have one more."""
        called, wall = name_and_quota(tx, home)
        of = f"organisation `{called}`"
        used = Amounts(projects=count_projects(tx, home))
        hint = "Delete a project that is not used, or ask the operator for more: `tera quota show`"
        quotas.check(wall, used, Amounts(projects=1), of=of, hint=hint)
        quotas.check_within(given, wall, of=of)
        return quotas.overlaid(given, quotas.clamped(self._defaults.project, wall))


def project_in(tx: Transaction, actor: Actor, ref: str | None, *, removed: bool = False) -> Project:
    """The project meant, if the actor reaches it. Only operators are told what exists elsewhere.

    An operator may name a project of any organisation, by its name alone or as `ORGANISATION:PROJECT`.
    """
    found = _meant(tx, actor) if ref is None else store.project(tx, actor.organisation_id, ref)
    if found is None and ref is not None and actor.is_operator:
        found = (store.removed_project(tx, ref) if removed else None) or _of_any_organisation(tx, ref)
    if found is None or not rules.in_project(actor, found):
        if ref is None:
            raise NotFound(
                "It is not clear which project is meant",
                hint="Name one: `project`, or `--project` on the command line; `tera project list` lists them",
            )
        see = f"{suggestion(ref, _reached(tx, actor))} `tera project list` has those this key reaches".strip()
        raise NotFound("There is no such project", hint=see)
    return found


def _reached(tx: Transaction, actor: Actor) -> list[str]:
    """Names that may be suggested: of the actor's own projects, so that nobody learns of others."""
    only = rules.projects_with(actor, Permission.PROJECT_READ)
    return [each.name for each in store.projects(tx, actor.organisation_id, only, limit=NAMES_MAX)]


def _of_any_organisation(tx: Transaction, ref: str) -> Project:
    home, colon, name = ref.rpartition(":")
    organisation = found_organisation(tx, home).id if colon else ""
    options = store.projects_of_any_organisation(tx, organisation, name, limit=OPTIONS_MAX)
    if len(options) > 1:
        raise ambiguous_name("project", ref, (f"{each.id} ({owner})" for each, owner in options))
    if not options:
        names = store.names_of_any_organisation(tx, organisation, limit=NAMES_MAX)
        raise not_found("project", ref, names, see="`tera project list --org NAME` lists them")
    return options[0][0]


def with_network(tx: Transaction, actor: Actor, project: Project) -> Project:
    """The project with a network number, its own or the lowest free one; the last few are for operators."""
    if project.network_number >= 0:
        return project
    store.lock_networks(tx)
    number = store.free_network_in_all_projects(tx)
    if number >= NETWORKS_MAX - (0 if actor.is_operator else NETWORKS_KEPT):
        raise Refused(
            f"All {NETWORKS_MAX} networks are taken",
            hint="Each project with instances has one. Delete projects that are not used any more",
        )
    store.set_network(tx, project.id, number)
    return replace(project, network_number=number)


def _meant(tx: Transaction, actor: Actor) -> Project | None:
    """The project of an actor who names none."""
    if actor.project_id:
        return store.project(tx, actor.organisation_id, actor.project_id)
    only = None if "" in actor.roles else tuple(actor.roles)
    reached = store.projects_with_default_first(tx, actor.organisation_id, DEFAULT_PROJECT, only, limit=2)
    if len(reached) == 1 or (reached and reached[0].name == DEFAULT_PROJECT):
        return reached[0]
    return None
