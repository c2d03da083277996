"""The owner of a run as an actor: the loops launch and delete its instances in the owner's name."""

from teraflock.base.errors import Forbidden, NotFound
from teraflock.run.model import Run
from teraflock.storage.database import Transaction
from teraflock.tenant.member.store import member
from teraflock.tenant.model import Actor, KeyId, Project
from teraflock.tenant.project.store import project_of_any_organisation
from teraflock.tenant.rules import Permission, require


def owner_of(tx: Transaction, run: Run, *, anyone: bool = False) -> tuple[Actor, Project]:
    """The member who created a run, with the roles of now, and its project.

    `anyone`: also a member who was removed or may not launch any more, because an instance must always be deleted.
    """
    project = project_of_any_organisation(tx, run.project_id)
    if project is None:
        raise NotFound("The project of the run no longer exists")
    found = member(tx, project.organisation_id, run.created_by)
    if found is None and not anyone:
        raise Forbidden("The member who created the run was removed", hint="Create it again")
    actor = Actor(
        key_id=KeyId(""),
        member_id=run.created_by,
        member_name=found.name if found else "",
        organisation_id=project.organisation_id,
        is_operator=False,
        roles=found.roles if found else {},
        project_id=project.id,
    )
    if not anyone:
        require(actor, Permission.INSTANCE_WRITE, project)
    return actor, project
