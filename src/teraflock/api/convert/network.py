"""Converters of networks and of answers about connections."""

from collections.abc import Mapping, Sequence

from teraflock.api.convert.security_group import rule_answer
from teraflock.api.convert.subnet import subnet_answer
from teraflock.base.filling import filled
from teraflock.network.checking import NetworkCheck
from teraflock.network.ipv6 import six, six_network
from teraflock.network.openings import Edge
from teraflock.network.peering.model import Peering
from teraflock.network.rules import gateway
from teraflock.network.service import NetworkView
from teraflock.network.walls import Permit
from teraflock.wire.network import (
    ConnectionAnswer,
    DecidingRule,
    NetworkAnswer,
    NetworkCheckAnswer,
    NetworkGraphAnswer,
    NetworkInstance,
    PeeringAnswer,
)


def network_answer(view: NetworkView) -> NetworkAnswer:
    network = view.network
    return filled(
        NetworkAnswer,
        network,
        cidr=str(network.cidr),
        ipv6_cidr=six_network(str(network.cidr)),
        gateway=str(gateway(network.number)),
        subnets=tuple(map(subnet_answer, view.subnets)),
        instances=tuple(
            NetworkInstance(instance=each.instance, address=each.address, ipv6_address=six(each.address))
            for each in view.tenancies
        ),
        peerings=tuple(map(peering_answer, view.peerings)),
    )


def peering_answer(peering: Peering) -> PeeringAnswer:
    return PeeringAnswer(
        project_id=peering.peer_project_id,
        project=peering.peer_project,
        network=peering.peer_network,
        cidr=peering.peer_cidr,
        state=peering.state,
        since=peering.since,
    )


def check_answer(check: NetworkCheck) -> NetworkCheckAnswer:
    names: dict[str, str] = {each.id: each.name for each in check.groups}
    return NetworkCheckAnswer(
        passes=check.reach.stop is None,
        sentence=check.sentence,
        hint=check.hint,
        leaving=_deciding(check.reach.leaving, names),
        entering=_deciding(check.reach.entering, names),
    )


def graph_answer(ends: Sequence[str], edges: Sequence[Edge]) -> NetworkGraphAnswer:
    connections = (filled(ConnectionAnswer, each) for each in edges)
    return NetworkGraphAnswer(ends=tuple(ends), connections=tuple(connections))


def _deciding(permit: Permit | None, names: Mapping[str, str]) -> DecidingRule | None:
    if permit is None:
        return None
    return DecidingRule(security_group=names[permit.group], rule=rule_answer(permit.rule, names))
