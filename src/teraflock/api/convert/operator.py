"""Instances of every tenant on the wire, with whose they are."""

from teraflock.api.convert.instance import instance_answer
from teraflock.instance.model import Located
from teraflock.wire.operator import LocatedInstance


def located_instance(found: Located) -> LocatedInstance:
    instance = found.view.instance
    return LocatedInstance(
        organisation_id=found.organisation_id,
        organisation=found.organisation_name,
        project=found.project_name,
        problem=instance.problem_operator or instance.problem,
        instance=instance_answer(found.view, enters=False),
    )
