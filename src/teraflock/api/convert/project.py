"""Projects on the wire."""

from teraflock.api.convert.quota import quota_shape
from teraflock.base.filling import filled
from teraflock.network.rules import subnet
from teraflock.tenant.model import (
    Project,
)
from teraflock.wire.project import ProjectAnswer


def project_answer(project: Project) -> ProjectAnswer:
    return filled(
        ProjectAnswer,
        project,
        quota=quota_shape(project.quota),
        subnet=str(subnet(project.network_number)) if project.network_number >= 0 else "",
    )
