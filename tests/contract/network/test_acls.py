"""Network ACLs on both databases: numbers, the one that is attached, and what the loop loads."""

import pytest
from tests.contract.network.test_security_groups import Office

from teraflock.base.errors import Conflict, NotFound, Refused
from teraflock.network.acl import service as acts
from teraflock.network.acl.model import AclRule
from teraflock.network.acl.rules import rule_from
from teraflock.network.acl.service import AclService
from teraflock.network.rules import subnet
from teraflock.storage.database import Database
from teraflock.tenant.service import TenantService


class Border(Office):
    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self.acls = AclService(database, self.installation.clock, self.installation.random_bytes)
        self.acls.create(self.actor, self.project, "one")
        self.acls.create(self.actor, self.project, "two")

    def add(self, acl: str, way: str, number: int, action: str = "allow") -> AclRule:
        rule = rule_from(way, number, action, "tcp", "80", "0.0.0.0/0")
        self.acls.add(self.actor, self.project, acl, rule)
        return rule


@pytest.fixture
def border(database: Database) -> Border:
    return Border(database)


def test_the_attached_acl_is_loaded(border: Border) -> None:
    border.launch("web")
    late, early = border.add("one", "in", 20), border.add("one", "in", 10, "deny")
    assert border.loaded().borders == {}
    border.acls.attach(border.actor, border.project, "one")
    network = str(subnet(0))
    assert border.loaded().borders == {network: (early, late)}
    border.acls.remove(border.actor, border.project, "one", "in", 10)
    assert border.loaded().borders == {network: (late,)}
    border.acls.attach(border.actor, border.project, "two")
    assert border.loaded().borders == {network: ()}, "without rules it stops everything"
    assert [each.subnets for each in border.acls.all(border.project)] == [(), ("default/default",)]
    border.acls.detach(border.actor, border.project, "two")
    assert border.loaded().borders == {}


def test_what_cannot_be_is_refused_and_changes_nothing(
    border: Border, monkeypatch: pytest.MonkeyPatch
) -> None:
    border.add("one", "in", 10)
    border.add("one", "out", 10)
    with pytest.raises(Conflict, match="has a rule 10 for `in` already"):
        border.add("one", "in", 10, "deny")
    with pytest.raises(NotFound, match="has no rule 11"):
        border.acls.remove(border.actor, border.project, "one", "in", 11)
    with pytest.raises(Conflict, match="already exists"):
        border.acls.create(border.actor, border.project, "one")
    with pytest.raises(Conflict, match="is not attached"):
        border.acls.detach(border.actor, border.project, "one")
    border.acls.attach(border.actor, border.project, "one")
    with pytest.raises(Conflict, match="is in use"):
        border.acls.delete(border.actor, border.project, "one")
    monkeypatch.setattr(acts, "ACLS_MAX", 2)
    monkeypatch.setattr(acts, "RULES_MAX", 2)
    with pytest.raises(Refused, match="can have at most 2 ACLs"):
        border.acls.create(border.actor, border.project, "three")
    with pytest.raises(Refused, match="can have at most 2 rules"):
        border.add("one", "in", 12)
    assert [(each.direction, each.number) for each in border.acls.show(border.project, "one").rules] == [
        ("in", 10),
        ("out", 10),
    ]


def test_other_projects_are_out_of_reach(border: Border) -> None:
    tenants = TenantService(border.database, border.installation.clock, border.installation.random_bytes)
    other = tenants.projects.make(border.actor, "other")
    mine = border.acls.show(border.project, "one")
    for ref in ("one", mine.id):
        with pytest.raises(NotFound):
            border.acls.attach(border.actor, other, ref)
