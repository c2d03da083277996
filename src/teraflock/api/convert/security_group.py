"""Converters of security groups."""

from collections.abc import Iterable, Mapping

from teraflock.base.filling import filled
from teraflock.network.security_group.model import GroupId, GroupMember, Rule, SecurityGroup
from teraflock.network.security_group.rules import peer_text, ports_text
from teraflock.wire.security_group import RuleAnswer, SecurityGroupAnswer


def names_by_group(members: Iterable[GroupMember]) -> dict[GroupId, tuple[str, ...]]:
    found: dict[GroupId, list[str]] = {}
    for member in members:
        for group in member.groups:
            found.setdefault(group, []).append(member.name)
    return {group: tuple(names) for group, names in found.items()}


def security_group_answers(
    groups: Iterable[SecurityGroup],
    all_groups: Iterable[SecurityGroup],
    members: Mapping[GroupId, tuple[str, ...]],
    counts: Mapping[GroupId, int],
) -> tuple[SecurityGroupAnswer, ...]:
    """`all_groups`: of the project, for the names in rules."""
    names: dict[str, str] = {each.id: each.name for each in all_groups}
    return tuple(
        filled(
            SecurityGroupAnswer,
            each,
            rules=tuple(rule_answer(rule, names) for rule in each.rules),
            instances=members.get(each.id, ()),
            instance_count=counts.get(each.id, 0),
        )
        for each in groups
    )


def rule_answer(rule: Rule, names: Mapping[str, str]) -> RuleAnswer:
    return filled(RuleAnswer, rule, ports=ports_text(rule), peer=peer_text(rule, names))
