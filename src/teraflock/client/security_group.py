"""Security groups of a project."""

from teraflock.client.noun import Noun
from teraflock.wire.security_group import (
    RuleAnswer,
    RuleRequest,
    SecurityGroupAnswer,
    SecurityGroupList,
    SecurityGroupRequest,
)

_PATH = "security-groups"


class SecurityGroups(Noun):
    def list(self, *, instance: str = "", instances: bool = True) -> tuple[SecurityGroupAnswer, ...]:
        """All groups, or those of one instance. Without the names of members, a large project answers faster."""
        more = {} if instances else {"instances": False}
        return self._get(SecurityGroupList, _PATH, instance=instance, **more).items

    def get(self, group: str, *, instances_max: int | None = None) -> SecurityGroupAnswer:
        return self._get(SecurityGroupAnswer, _PATH, group, instances_max=instances_max)

    def create(self, name: str, *, idempotency_key: str = "") -> SecurityGroupAnswer:
        body = SecurityGroupRequest(name=name)
        return self._create(SecurityGroupAnswer, _PATH, body=body, idempotency_key=idempotency_key)

    def delete(self, group: str) -> None:
        self._send("DELETE", _PATH, group)

    def allow(self, group: str, request: RuleRequest) -> RuleAnswer:
        return self._act("POST", RuleAnswer, _PATH, group, "rules", body=request)

    def revoke(self, group: str, rule: str) -> None:
        self._send("DELETE", _PATH, group, "rules", rule)

    def attach(self, group: str, instance: str) -> SecurityGroupAnswer:
        return self._act("PUT", SecurityGroupAnswer, _PATH, group, "instances", instance)

    def detach(self, group: str, instance: str) -> SecurityGroupAnswer:
        return self._act("DELETE", SecurityGroupAnswer, _PATH, group, "instances", instance)
