"""What the firewall needs for balancers."""

from collections.abc import Collection, Iterable, Mapping
from typing import Final

import msgspec

from teraflock.network.balancer import store
from teraflock.network.balancer.model import Balancer, BalancerId, BalancerPlace, Target
from teraflock.network.balancer.rules import firewall_rules, group_of
from teraflock.network.security_group.model import GroupId, GroupMember, Rule
from teraflock.network.security_group.rules import default_id
from teraflock.network.walls import Published
from teraflock.storage.database import Transaction
from teraflock.tenant.model import ProjectId

NAME_PREFIX: Final = "lb:"
"""An instance and a balancer may have the same name."""


class BalancerWalls(msgspec.Struct, frozen=True, kw_only=True):
    """What the firewall of a site, or the picture of a project, needs for its balancers."""

    stations: Mapping[str, tuple[GroupId, ...]] = {}
    rules: Mapping[GroupId, tuple[Rule, ...]] = {}
    published: tuple[Published, ...] = ()


class BalancerMember(msgspec.Struct, frozen=True, kw_only=True):
    """A balancer as one end of connections."""

    member: GroupMember
    """Its name is `lb:NAME`."""
    port: int
    is_published: bool
    is_public: bool


def walls_of_balancers(tx: Transaction, linked: Collection[str]) -> Mapping[str, BalancerWalls]:
    """By site."""
    targets = store.targets_in_all_projects(tx, linked)
    by_site: dict[str, list[tuple[Balancer, BalancerPlace]]] = {}
    for balancer, place in store.in_all_projects(tx):
        if not balancer.ending:
            by_site.setdefault(balancer.site, []).append((balancer, place))
    return {site: walls(each, targets) for site, each in by_site.items()}


def members_of_balancers(
    tx: Transaction, project: ProjectId, linked: Collection[str]
) -> tuple[tuple[BalancerMember, ...], Mapping[GroupId, tuple[Rule, ...]]]:
    """The balancers of a project as members of groups, by name, and the rules of the groups that only they have."""
    rows = [each for each in store.in_all_projects(tx, project) if not each[0].ending]
    made = walls(rows, store.targets(tx, project, linked))
    found = (
        BalancerMember(
            member=GroupMember(
                instance_id=balancer.id,
                name=f"{NAME_PREFIX}{balancer.name}",
                address=balancer.address,
                site=balancer.site,
                groups=made.stations[balancer.address],
            ),
            port=balancer.port,
            is_published=balancer.published is not None,
            is_public=place.is_public,
        )
        for balancer, place in sorted(rows, key=lambda row: row[0].name)
    )
    return tuple(found), made.rules


def walls(
    rows: Iterable[tuple[Balancer, BalancerPlace]], targets: Mapping[BalancerId, tuple[Target, ...]]
) -> BalancerWalls:
    """A balancer is in the `default` group of its project and in a group of its own."""
    stations, rules, published = {}, {}, []
    for balancer, place in rows:
        group = group_of(balancer.id)
        stations[balancer.address] = tuple(sorted((default_id(balancer.project_id), group)))
        reached = (each.address for each in targets.get(balancer.id, ()) if each.address)
        rules[group] = firewall_rules(balancer, place, reached)
        if balancer.published is not None:
            published.append(Published(place.host, balancer.published, balancer.address, balancer.port))
    return BalancerWalls(stations=stations, rules=rules, published=tuple(published))
