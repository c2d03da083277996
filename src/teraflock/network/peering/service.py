"""What the edges ask of peerings. The loop for security groups brings them to the hosts.

A peering is two consents. A request says nothing about whether the other side exists, so nobody can use it to guess
the networks of others.
"""

import re
from typing import Final

from teraflock.base.errors import BadInput, NotFound, Refused
from teraflock.base.names import check_name
from teraflock.network.model import ProjectNetwork
from teraflock.network.peering import store
from teraflock.network.peering.model import Peering
from teraflock.network.service import named
from teraflock.storage.database import Transaction
from teraflock.tenant.audit.acting import AuditedService
from teraflock.tenant.model import Actor, Project, ProjectId
from teraflock.tenant.organisation.rules import check_active
from teraflock.tenant.project.claim import claimed
from teraflock.tenant.project.service import project_in

PEERINGS_MAX: Final = 20
"""Consents of a network."""
_PROJECT_ID: Final = re.compile(r"prj_[0-9a-z]{1,40}")


class PeeringService(AuditedService):
    def agree(self, actor: Actor, project: Project, network: str, peer: str) -> Peering:
        """Request a peering, or accept one that the other side requested. `peer` is `PROJECT/NETWORK`."""

        def work(tx: Transaction) -> Peering:
            claimed(tx, project)
            check_active(tx, project.organisation_id)
            own = named(tx, project, network).network
            far, name = _peer(tx, actor, project, peer)
            if (far, name) == (project.id, own.name):
                raise BadInput(
                    "A network cannot be peered with itself", hint="Name another network with `--with`"
                )
            if store.count(tx, own) >= PEERINGS_MAX:
                raise Refused(f"A network can have at most {PEERINGS_MAX} peerings", hint="End one first")
            now = self._clock.now()
            store.agree(tx, own, far, name, now)
            if far == project.id:  # both networks have the same owner
                store.agree(tx, named(tx, project, name).network, project.id, own.name, now)
            self._audit.record(
                tx, actor, "network.peer", own.id, project, name=own.name, peer=f"{far}/{name}"
            )
            return _of(tx, own, far, name)

        return self._write_with_locks(work)

    def end(self, actor: Actor, project: Project, network: str, peer: str) -> None:
        """End a peering, withdraw a request, or decline one. Both sides have to agree again."""

        def work(tx: Transaction) -> None:
            own = named(tx, project, network).network
            far, name = _peer(tx, actor, project, peer, exists=False)
            if not store.end(tx, own, far, name):
                raise NotFound(
                    f"The network `{own.name}` has no peering with `{peer[:120]}`",
                    hint=f"`tera network show {own.name}` lists its peerings",
                )
            self._audit.record(
                tx, actor, "network.unpeer", own.id, project, name=own.name, peer=f"{far}/{name}"
            )

        self._write(work)


def _of(tx: Transaction, own: ProjectNetwork, far: str, name: str) -> Peering:
    found = store.of_network(tx, own)
    return next(each for each in found if (each.peer_project_id, each.peer_network) == (far, name))


def _peer(
    tx: Transaction, actor: Actor, project: Project, text: str, *, exists: bool = True
) -> tuple[ProjectId, str]:
    """The project's id and the network's name. `exists`: in a project that the actor can access, it must exist."""
    ref, slash, name = text.rpartition("/")
    if not name or (slash and not ref) or "/" in ref:
        raise BadInput(f"`{text[:80]}` is not a network", hint="Write `PROJECT/NETWORK`")
    try:
        far = project_in(tx, actor, ref) if slash else project
    except NotFound:
        if _PROJECT_ID.fullmatch(ref):
            check_name(name, "a network")
            return ProjectId(ref), name
        raise NotFound(
            "There is no such project",
            hint="For a project that this key cannot access, write its id: `prj_…/NETWORK`."
            " Its owner sees the id with `tera project list --json`",
        ) from None
    return far.id, named(tx, far, name).network.name if exists else name
