"""The loop that stops the instances of suspended organisations, and deletes everything of organisations
marked for deletion.

    load    organisations in these states, and their instances that are not stopping or deleting yet
    decide  the state selects stop or delete
    apply   as the operator; when a deleted organisation has nothing left, it is closed

The state is in the row. A crash loses nothing, and an instance launched at the same moment is stopped in the
next turn.
"""

import logging
from typing import Final

from teraflock.base.errors import TeraflockError
from teraflock.image import store as images
from teraflock.instance.across import store as across
from teraflock.instance.service import InstanceService
from teraflock.storage.database import Database
from teraflock.tenant.model import Actor, KeyId, MemberId, Organisation, OrganisationState, ProjectId
from teraflock.tenant.organisation import store as organisations
from teraflock.tenant.organisation.service import OrganisationService
from teraflock.tenant.project.store import project_of_any_organisation

LOG: Final = logging.getLogger("teraflock.reconcile")
INSTANCES_PER_TURN: Final = 100


class OrganisationLoop:
    def __init__(self, database: Database, acts: OrganisationService, instances: InstanceService) -> None:
        self._database = database
        self._acts = acts
        self._instances = instances

    def turn(self) -> None:
        with self._database.read() as tx:
            found = organisations.organisations_to_end(tx)
        for organisation in found:
            self._end(organisation)

    def _end(self, organisation: Organisation) -> None:
        deleted = organisation.state == OrganisationState.DELETING
        with self._database.read() as tx:
            due = across.to_end_in_organisation(
                tx, organisation.id, deleted=deleted, limit=INSTANCES_PER_TURN
            )
        for project_id, instance_id in due:
            try:
                self._end_one(organisation, project_id, instance_id, deleted=deleted)
            except TeraflockError as error:
                LOG.info("%s of %s waits: %s", instance_id, organisation.name, error.sentence)
        if deleted and not due:
            self._close(organisation)

    def _close(self, organisation: Organisation) -> None:
        with self._database.read() as tx:
            instances, left = organisations.contents(tx, organisation.id)
        if instances:
            return  # instances may still use an image until they are gone
        if left:
            self._database.write(lambda tx: images.delete_all_of_organisation(tx, organisation.id))
        elif self._acts.close(organisation.id):
            LOG.info("the organisation %s is deleted", organisation.name)

    def _end_one(self, organisation: Organisation, project_id: ProjectId, id: str, *, deleted: bool) -> None:
        with self._database.read() as tx:
            project = project_of_any_organisation(tx, project_id)
        if project is None:
            return
        reason = f"the organisation is {organisation.state}: {organisation.state_reason}"
        actor = _operator(organisation)
        if deleted:
            self._instances.delete(actor, project, id, reason=reason)
        else:
            self._instances.suspend(actor, project, id, reason)


def _operator(organisation: Organisation) -> Actor:
    return Actor(
        key_id=KeyId(""), member_id=MemberId(""), member_name="operator", organisation_id=organisation.id,
        is_operator=True, roles={},
    )  # fmt: skip
