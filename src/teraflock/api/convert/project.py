"""Projects on the wire."""

from teraflock.api.convert.quota import quota_shape
from teraflock.network.rules import subnet
from teraflock.tenant.model import (
    Project,
)
from teraflock.wire.project import ProjectAnswer


def project_answer(project: Project) -> ProjectAnswer:
    return ProjectAnswer(
        id=project.id,
        name=project.name,
        organisation_id=project.organisation_id,
        quota=quota_shape(project.quota),
        subnet=str(subnet(project.network_number)) if project.network_number >= 0 else "",
        created_at=project.created_at,
    )
