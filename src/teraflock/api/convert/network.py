"""Converters of answers about the network."""

from collections.abc import Mapping, Sequence

from teraflock.api.convert.security_group import rule_answer
from teraflock.network.reach import Edge
from teraflock.network.service import NetworkCheck
from teraflock.network.walls import Permit
from teraflock.wire.network import ConnectionAnswer, DecidingRule, NetworkCheckAnswer, NetworkGraphAnswer


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
    connections = (
        ConnectionAnswer(source=each.source, target=each.target, allows=each.allows) for each in edges
    )
    return NetworkGraphAnswer(ends=tuple(ends), connections=tuple(connections))


def _deciding(permit: Permit | None, names: Mapping[str, str]) -> DecidingRule | None:
    if permit is None:
        return None
    return DecidingRule(security_group=names[permit.group], rule=rule_answer(permit.rule, names))
