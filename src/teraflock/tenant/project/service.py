"""Projects: they contain instances, images and networks.

A project gets its network `default` with its first instance, so empty projects use no networks.
"""

from typing import Final

from msgspec.structs import replace

from teraflock.base.errors import Conflict, NotFound, Refused, ambiguous_name, not_found, suggestion
from teraflock.base.ids import new_id
from teraflock.base.names import check_name
from teraflock.base.quantities import count_text
from teraflock.storage.database import Transaction
from teraflock.tenant import rules
from teraflock.tenant.acts import Acts
from teraflock.tenant.model import Actor, OrganisationId, Project, ProjectId, Quota
from teraflock.tenant.organisation.rules import NAMES_MAX, check_active
from teraflock.tenant.organisation.rules import find as find_organisation
from teraflock.tenant.project import store
from teraflock.tenant.quota import rules as quotas
from teraflock.tenant.quota.rules import QuotaAmounts
from teraflock.tenant.quota.store import count_projects, name_and_quota
from teraflock.tenant.rules import Permission
from teraflock.tenant.sign_up.store import is_signed_up

DEFAULT_PROJECT: Final = "default"
OPTIONS_MAX: Final = 10
"""How many to list if a name is ambiguous."""
SEE_ALL: Final = (
    "`tera project list --org NAME` lists projects; write one of another organisation as `ORG:PROJECT`"
)
_WHOLE: Final = " in the whole organisation"


class ProjectService(Acts):
    def page(
        self, actor: Actor, *, organisation: OrganisationId | None = None, after: str = "", limit: int
    ) -> tuple[Project, ...]:
        """The projects that the actor can access. Only operators can name another organisation."""
        home = organisation or actor.organisation_id
        only = rules.projects_in(actor, Permission.PROJECT_READ, home)
        with self._database.read() as tx:
            return store.projects(tx, home, only, after=after, limit=limit)

    def show(self, actor: Actor, ref: str | None, *, removed: bool = False) -> Project:
        """Find a project by id or name; None: the key's project, or the only one the actor can access, or `default`.

        With `removed`, operators also find removed projects, whose bills are kept.
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
        """Limits that the quota leaves out get the default for new projects."""
        home = organisation or actor.organisation_id
        held = rules.in_organisation(actor, home)
        rules.check_held(Permission.PROJECT_WRITE, held)
        if quota not in (None, Quota()):
            rules.check_held(Permission.QUOTA_WRITE, held)
        check_name(name, "a project")

        return self._database.write(lambda tx: self._made(tx, actor, home, name, quota or Quota()))

    def set_quota(self, actor: Actor, ref: str, quota: Quota) -> Project:
        """Set a quota within the organisation's. An owner of only this project may not set it."""

        def work(tx: Transaction) -> Project:
            project = project_in(tx, actor, ref)
            rules.require(actor, Permission.QUOTA_WRITE, project)
            home = project.organisation_id
            rules.check_held(Permission.QUOTA_WRITE, rules.in_organisation(actor, home), _WHOLE)
            name, outer = name_and_quota(tx, home)
            quotas.check_within(quota, outer, of=f"organisation `{name}`")
            store.set_quota(tx, project.id, quota)
            self._audit.record(tx, actor, "quota.set", project.id, project, **quotas.flat(quota))
            return replace(project, quota=quota)

        return self._database.write(work)

    def remove(self, actor: Actor, ref: str) -> Project:
        """Remove an empty project, with its roles and keys."""

        def work(tx: Transaction) -> Project:
            project = project_in(tx, actor, ref)
            rules.require(actor, Permission.PROJECT_WRITE, project)
            instances, images = store.contents(tx, project.id)
            if instances or images:
                held = f"{count_text(instances, 'instance')} and {count_text(images, 'image')}"
                raise Refused(
                    f"Project `{project.name}` still has {held}",
                    hint="Delete them first",
                )
            _check_not_only_prepaid(tx, actor, project)
            store.remove_project(tx, project.id, self._clock.now())
            self._audit.record(tx, actor, "project.remove", project.id, project, name=project.name)
            return project

        return self._database.write(work)

    def _made(self, tx: Transaction, actor: Actor, home: OrganisationId, name: str, given: Quota) -> Project:
        self._check_there(tx, actor, home)
        check_active(tx, home)
        if store.project(tx, home, name) is not None:
            raise Conflict(f"A project `{name}` already exists", hint="Choose another name")
        quota = self._allowed_one_more(tx, home, given)
        now = self._clock.now()
        project = Project(
            id=ProjectId(new_id("prj", now, self._random_bytes)),
            organisation_id=home,
            name=name,
            quota=quota,
            network_number=store.NO_NETWORK,
            created_at=now,
        )
        store.put_project(tx, project)
        self._audit.record(tx, actor, "project.make", project.id, project, name=name, **quotas.flat(quota))
        return project

    def _allowed_one_more(self, tx: Transaction, home: OrganisationId, given: Quota) -> Quota:
        """The quota of a new project. Raises if its organisation may not have another project."""
        called, outer = name_and_quota(tx, home)
        of = f"organisation `{called}`"
        used = QuotaAmounts(projects=count_projects(tx, home))
        hint = (
            "Delete an unused project, or ask the operator for a higher quota. `tera quota show` shows yours"
        )
        quotas.check(outer, used, QuotaAmounts(projects=1), of=of, hint=hint)
        quotas.check_within(given, outer, of=of)
        return quotas.overlaid(given, quotas.clamped(self._defaults.project, outer))


def project_in(tx: Transaction, actor: Actor, ref: str | None, *, removed: bool = False) -> Project:
    """Find the project, if the actor can access it. Only operators learn what exists elsewhere.

    An operator can name a project of any organisation, by its name alone or as `ORGANISATION:PROJECT`.
    """
    found = _default_project(tx, actor) if ref is None else store.project(tx, actor.organisation_id, ref)
    if found is None and ref is not None and actor.is_operator:
        found = (store.removed_project(tx, ref) if removed else None) or _of_any_organisation(tx, ref)
    if found is None or not rules.in_project(actor, found):
        if ref is None:
            raise NotFound(
                "Several projects are possible, and the request names none",
                hint="Set `project`, or use `--project` on the command line. `tera project list` lists all projects",
            )
        see = (
            f"{suggestion(ref, _accessible_names(tx, actor))}"
            " `tera project list` shows the projects that this key can access"
        ).strip()
        raise NotFound("There is no such project", hint=see)
    return found


def _accessible_names(tx: Transaction, actor: Actor) -> list[str]:
    """Names to suggest: only of the actor's own projects, so that nobody learns of others."""
    only = rules.projects_with(actor, Permission.PROJECT_READ)
    return [each.name for each in store.projects(tx, actor.organisation_id, only, limit=NAMES_MAX)]


def _of_any_organisation(tx: Transaction, ref: str) -> Project:
    home, colon, name = ref.rpartition(":")
    organisation = find_organisation(tx, home).id if colon else ""
    options = store.projects_of_any_organisation(tx, organisation, name, limit=OPTIONS_MAX)
    if len(options) > 1:
        raise ambiguous_name("project", ref, (f"{each.id} ({owner})" for each, owner in options))
    if not options:
        names = store.names_of_any_organisation(tx, organisation, limit=NAMES_MAX)
        raise not_found("project", ref, names, see=SEE_ALL)
    return options[0][0]


def _default_project(tx: Transaction, actor: Actor) -> Project | None:
    """The project for an actor who names none."""
    if actor.project_id:
        return store.project(tx, actor.organisation_id, actor.project_id)
    only = None if "" in actor.roles else tuple(actor.roles)
    reached = store.projects_with_default_first(tx, actor.organisation_id, DEFAULT_PROJECT, only, limit=2)
    if len(reached) == 1 or (reached and reached[0].name == DEFAULT_PROJECT):
        return reached[0]
    return None


def _check_not_only_prepaid(tx: Transaction, actor: Actor, project: Project) -> None:
    """Keep the only project of an organisation that signed up: it pays in advance, and a new one would not."""
    home = project.organisation_id
    if not actor.is_operator and is_signed_up(tx, home) and len(store.projects(tx, home, None, limit=2)) == 1:
        raise Refused(
            f"`{project.name}` is the only project of this organisation, and its credit belongs to it",
            hint="Rename it instead, or ask the operator to remove the organisation",
        )
