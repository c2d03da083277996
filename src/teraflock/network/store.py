"""All SQL for networks and subnets.

A project's row repeats the number of its network `default`; below 0 it has none. Both are written here together.
"""

from collections.abc import Container
from datetime import datetime
from typing import Final

import msgspec

from teraflock.base.clock import microseconds
from teraflock.network.fabric import NetworkMember, PassedNetwork
from teraflock.network.model import DEFAULT, Layout, ProjectNetwork, Subnet, Tenancy
from teraflock.network.naming import SUBDOMAIN, NamedMember
from teraflock.network.rules import number_of
from teraflock.storage.database import Transaction
from teraflock.storage.table import Table, number
from teraflock.tenant.model import OrganisationId, ProjectId
from teraflock.tenant.project.store import IN_ORGANISATION, NO_NETWORK, set_network

_NETWORK: Final = Table("network", ProjectNetwork)
_SUBNET: Final = Table("subnet", Subnet)
_ADDRESSES: Final = msgspec.json.Decoder(tuple[str, ...])


# Networks


def layouts(tx: Transaction, project: ProjectId) -> tuple[Layout, ...]:
    """The networks of a project by name, with their subnets. One statement, because every launch needs it."""
    rows = tx.all(
        f"SELECT {_NETWORK.names_in('n')}, {_SUBNET.names_in('s')} FROM network n"
        " LEFT JOIN subnet s ON s.network_id = n.id"
        " WHERE n.project_id = :project AND n.removed_at_us IS NULL ORDER BY n.name, s.name",
        project=project,
    )
    width = len(_NETWORK.columns)
    found: dict[str, Layout] = {}
    for row in rows:
        known = found.get(row[0]) or Layout(network=_NETWORK.value(row[:width]))
        more = (_SUBNET.value(row[width:]),) if row[width] is not None else ()
        found[row[0]] = Layout(network=known.network, subnets=(*known.subnets, *more))
    return tuple(found.values())


def insert(tx: Transaction, network: ProjectNetwork) -> None:
    _NETWORK.add(tx, network)
    if network.name == DEFAULT:
        set_network(tx, network.project_id, network.number)


def free_number_in_all_projects(tx: Transaction) -> int:
    """The lowest free number. A removed network keeps its number until no engine has it."""
    if tx.one("SELECT 1 FROM network WHERE number = 0") is None:
        return 0
    row = tx.one(
        "SELECT MIN(a.number) + 1 FROM network a WHERE NOT EXISTS"
        " (SELECT 1 FROM network b WHERE b.number = a.number + 1)"
    )
    assert row is not None, "number 0 is taken, so some number has no successor"
    return int(row[0])


def mark_removed(tx: Transaction, network: ProjectNetwork, now: datetime) -> None:
    """The loop removes it from the engines."""
    tx.run("UPDATE network SET removed_at_us = :now WHERE id = :id", now=microseconds(now), id=network.id)
    tx.run("DELETE FROM subnet WHERE network_id = :id", id=network.id)
    if network.name == DEFAULT:
        set_network(tx, network.project_id, NO_NETWORK)


def forget(tx: Transaction, network: ProjectNetwork, *, with_project: bool) -> None:
    """Free the network's part of the address range, because no engine has it any more."""
    if with_project:
        set_network(tx, network.project_id, NO_NETWORK)
    tx.run("DELETE FROM subnet WHERE network_id = :id", id=network.id)
    tx.run("DELETE FROM network_peering WHERE network_id = :id", id=network.id)
    tx.run("DELETE FROM network WHERE id = :id", id=network.id)


def removed_in_all_projects(tx: Transaction) -> tuple[tuple[ProjectNetwork, bool], ...]:
    """Networks that engines may still have although they, or their projects, were removed. True: the project was."""
    rows = tx.all(
        f"SELECT {_NETWORK.names_in('n')}, p.removed_at_us FROM network n JOIN project p ON p.id = n.project_id"
        " WHERE n.removed_at_us IS NOT NULL OR p.removed_at_us IS NOT NULL ORDER BY n.id"
    )
    return tuple((_NETWORK.value(row[:-1]), row[-1] is not None) for row in rows)


def owner_in_all_projects(tx: Transaction, number: int) -> ProjectId:
    """The project of a network."""
    row = tx.one("SELECT project_id FROM network WHERE number = :number", number=number)
    assert row is not None, "the number is that of a network"
    return ProjectId(row[0])


def count(tx: Transaction, project: ProjectId) -> int:
    return _count(tx, "project_id = :id", project)


def count_of_organisation(tx: Transaction, organisation: OrganisationId) -> int:
    return _count(tx, f"project_id IN ({IN_ORGANISATION})", organisation)


def _count(tx: Transaction, where: str, id: str) -> int:
    return number(tx, f"SELECT COUNT(*) FROM network WHERE {where} AND removed_at_us IS NULL", id=id)


# Subnets


def insert_subnet(tx: Transaction, subnet: Subnet) -> None:
    _SUBNET.add(tx, subnet)


def remove_subnet(tx: Transaction, id: str) -> None:
    tx.run("DELETE FROM subnet WHERE id = :id", id=id)


# Addresses


def tenancies(tx: Transaction, project: ProjectId) -> tuple[Tenancy, ...]:
    """Every address that an instance or balancer of the project has, its first one first."""
    rows = tx.all(
        "SELECT id, name, address, more_addresses FROM instance WHERE project_id = :project AND address IS NOT NULL"
        " UNION ALL SELECT id, name, address, '[]' FROM balancer WHERE project_id = :project ORDER BY name, id",
        project=project,
    )
    return tuple(
        Tenancy(instance_id=id, instance=name, address=address)
        for id, name, first, more in rows
        for address in (first, *addresses_from(more))
    )


def addresses_from(text: str) -> tuple[str, ...]:
    """The addresses of further interfaces, as instances have them in their rows."""
    return () if text == "[]" else _ADDRESSES.decode(text)


def is_public(tx: Transaction, instance: str) -> bool:
    """Whether a public address leads to an instance."""
    return tx.one("SELECT 1 FROM address WHERE target_id = :id", id=instance) is not None


def surroundings(tx: Transaction, instance: str) -> tuple[frozenset[int], tuple[str, ...]]:
    """The ports of an instance that its host opens, and the closed networks that its host lets guests into."""
    ports = tx.all(
        "SELECT guest_port FROM host_port WHERE instance_id = :id"
        " UNION SELECT guest_port FROM published_port WHERE instance_id = :id",
        id=instance,
    )
    row = tx.one(
        "SELECT h.allow_out FROM instance i JOIN host h ON h.id = i.host_id WHERE i.id = :id", id=instance
    )
    return frozenset(int(each[0]) for each in ports), tuple(row[0].split()) if row else ()


def keys_in_all_projects(tx: Transaction, numbers: Container[int]) -> tuple[PassedNetwork, ...]:
    """What engines know these networks by, and their projects."""
    rows = tx.all("SELECT engine_key, number, project_id FROM network ORDER BY number")
    return tuple(
        PassedNetwork(key, int(number), project) for key, number, project in rows if number in numbers
    )


def members_in_all_projects(tx: Transaction) -> tuple[NetworkMember, ...]:
    """Every address of an instance or a balancer, with its site and its network."""
    keys = {int(number): key for number, key in tx.all("SELECT number, engine_key FROM network")}
    rows = tx.all(
        "SELECT site, address, more_addresses FROM instance WHERE address IS NOT NULL"
        " UNION ALL SELECT site, address, '[]' FROM balancer"
    )
    found = (
        NetworkMember(site, keys[number_of(address)], number_of(address), address)
        for site, first, more in rows
        for address in (first, *addresses_from(more))
    )
    return tuple(sorted(found, key=lambda each: each.address))


def named_in_all_projects(tx: Transaction) -> tuple[NamedMember, ...]:
    """Every address of an instance or a balancer, with its name, its network and its project."""
    networks = {
        int(number): (key, name, project_id, project)
        for number, key, name, project_id, project in tx.all(
            "SELECT n.number, n.engine_key, n.name, p.id, p.name FROM network n JOIN project p ON p.id = n.project_id"
        )
    }
    rows = tx.all(
        "SELECT id, name, site, address, more_addresses FROM instance WHERE address IS NOT NULL"
        f" UNION ALL SELECT id, name || '.{SUBDOMAIN}', site, address, '[]' FROM balancer WHERE ending = 0"
    )
    found = []
    for id, name, site, first, more in rows:
        for address in (first, *addresses_from(more)):
            key, network, project_id, project = networks[number := number_of(address)]
            found.append(
                NamedMember(
                    id=id,
                    name=name,
                    address=address,
                    site=site,
                    key=key,
                    number=number,
                    network=network,
                    project_id=project_id,
                    project=project,
                )
            )
    return tuple(sorted(found))
