"""Peerings on both databases: two consents, what others learn, and the end of a network or project."""

import pytest
from tests.contract.network.test_networks import Estate

from teraflock.base.errors import BadInput, NotFound, Refused
from teraflock.instance.orders import Order
from teraflock.network.checking import NetworkCheck
from teraflock.network.peering import service as acts
from teraflock.network.peering.model import PeeringState
from teraflock.network.peering.service import PeeringService
from teraflock.network.reach import Stop
from teraflock.network.security_group.model import Protocol
from teraflock.network.walls import Packet, decide
from teraflock.reconcile.networks import NetworkLoop
from teraflock.storage.database import Database
from teraflock.tenant.model import Actor, Project

NEAR, FAR = "10.128.0.16", "10.128.16.16"


class Street(Estate):
    """Two organisations, each with one instance in its network `default`."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self.peerings = PeeringService(database, self.installation.clock, self.installation.random_bytes)
        made = self.tenants.organisations.make(self.actor, "far", "zoe")
        self.zoe: Actor = self.tenants.authenticate(made.key.secret)
        self.theirs: Project = self.tenants.projects.show(self.zoe, None)
        # Operators may access every project, so the near side has an owner of its own.
        near = self.tenants.organisations.make(self.actor, "near", "ann")
        self.ann: Actor = self.tenants.authenticate(near.key.secret)
        self.mine: Project = self.tenants.projects.show(self.ann, None)
        for actor, project in ((self.ann, self.mine), (self.zoe, self.theirs)):
            self.networks.create(actor, project, "default")
            self.installation.service.launch(actor, project, Order(name="box"))

    def ask(self, peer: str = "") -> PeeringState:
        return self.peerings.agree(self.ann, self.mine, "default", peer or f"{self.theirs.id}/default").state

    def accept(self) -> PeeringState:
        return self.peerings.agree(self.zoe, self.theirs, "default", f"{self.mine.id}/default").state

    def passes(self, port: int = 22) -> bool:
        return decide(self.loaded(), Packet(NEAR, FAR, Protocol.TCP, port)).passes

    def states(self) -> list[PeeringState]:
        found = (self.networks.show(self.mine, "default"), self.networks.show(self.theirs, "default"))
        return [each.state for view in found for each in view.peerings]


@pytest.fixture
def street(database: Database) -> Street:
    return Street(database)


def test_packets_cross_only_while_both_sides_agree(street: Street) -> None:
    assert not street.passes()
    assert street.ask() == PeeringState.REQUESTED
    assert street.states() == [PeeringState.REQUESTED, PeeringState.OFFERED]
    assert not street.passes(), "one side alone opens nothing"
    assert street.accept() == PeeringState.ACTIVE
    assert street.states() == [PeeringState.ACTIVE, PeeringState.ACTIVE]
    assert street.passes(22), "the group `default` allows SSH from anywhere"
    assert not street.passes(80), "the security groups of both ends still decide"
    street.peerings.end(street.zoe, street.theirs, "default", f"{street.mine.id}/default")
    assert not street.passes()
    assert street.states() == []
    assert street.ask() == PeeringState.REQUESTED, "both have to agree again"
    assert not street.passes()


def test_a_request_does_not_reveal_what_exists(street: Street) -> None:
    real = street.peerings.agree(street.ann, street.mine, "default", f"{street.theirs.id}/default")
    fake = street.peerings.agree(street.ann, street.mine, "default", "prj_0000000000000000/default")
    other = street.peerings.agree(street.ann, street.mine, "default", f"{street.theirs.id}/secret")
    for each in (real, fake, other):
        assert (each.state, each.peer_project, each.peer_cidr) == (PeeringState.REQUESTED, "", "")
    with pytest.raises(NotFound, match="There is no such project"):
        street.ask("far/default")
    offered = street.networks.show(street.theirs, "default").peerings
    assert [(each.peer_project, each.peer_cidr) for each in offered] == [(street.mine.name, "")]


def test_a_deleted_network_ends_its_peerings_for_good(street: Street) -> None:
    street.create("spare")
    for actor, project, peer in (
        (street.ann, street.mine, f"{street.project.id}/spare"),
        (street.actor, street.project, f"{street.mine.id}/default"),
    ):
        own = "default" if project is street.mine else "spare"
        last = street.peerings.agree(actor, project, own, peer).state
    assert last == PeeringState.ACTIVE
    street.delete("spare")
    assert street.states() == []
    assert street.loaded().peers == frozenset()
    NetworkLoop(street.around).turn()
    street.create("spare")
    assert street.loaded().peers == frozenset(), "a new network of the same name is another network"


def test_the_peerings_of_a_removed_project_end(street: Street) -> None:
    lab = street.tenants.projects.make(street.ann, "lab")
    street.networks.create(street.ann, lab, "default")
    assert street.ask("lab/default") == PeeringState.REQUESTED
    street.peerings.agree(street.ann, lab, "default", f"{street.mine.name}/default")
    assert len(street.loaded().peers) == 1
    street.tenants.projects.remove(street.ann, "lab")
    assert street.loaded().peers == frozenset()
    NetworkLoop(street.around).turn()
    assert street.states() == []


def test_two_networks_of_one_project_are_peered_at_once(street: Street) -> None:
    street.networks.create(street.ann, street.mine, "back")
    assert street.ask("back") == PeeringState.ACTIVE
    with pytest.raises(BadInput, match="cannot be peered with itself"):
        street.ask("default")
    with pytest.raises(NotFound, match="no network `nowhere`"):
        street.ask("nowhere")
    with pytest.raises(BadInput, match="is not a network"):
        street.ask("/default")
    street.peerings.end(street.ann, street.mine, "default", "back")
    with pytest.raises(NotFound, match="has no peering with `back`"):
        street.peerings.end(street.ann, street.mine, "default", "back")


def test_the_number_of_peerings_is_limited(street: Street, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(acts, "PEERINGS_MAX", 1)
    street.ask()
    with pytest.raises(Refused, match="can have at most 1 peerings"):
        street.ask("prj_1/default")


def test_a_check_tells_whether_a_peer_is_reached_without_naming_its_rules(street: Street) -> None:
    def check(source: str, target: str, port: str) -> NetworkCheck:
        return street.checks.check(street.mine, source, target, "tcp", port)

    assert check("box", FAR, "22").reach.stop == Stop.APART
    street.ask()
    street.accept()
    reached = check("box", FAR, "22")
    assert (reached.reach.stop, reached.reach.entering) == (None, None)
    assert reached.reach.leaving is not None
    stopped = check("box", FAR, "80")
    assert stopped.reach.stop == Stop.IN
    assert stopped.sentence == f"The security groups of the peered network do not let tcp 80 into {FAR}"
    assert "default" not in stopped.sentence + stopped.hint
    backwards = check(FAR, "box", "22")
    assert (backwards.reach.stop, backwards.reach.leaving) == (None, None)
    with pytest.raises(BadInput, match="Neither end is an instance of the project"):
        check(FAR, "internet", "22")
