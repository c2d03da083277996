"""Network ACLs of a project."""

from teraflock.client.noun import Noun
from teraflock.wire.acl import AclAnswer, AclList, AclRequest, AclRuleRequest


class Acls(Noun):
    def list(self) -> tuple[AclAnswer, ...]:
        return self._get(AclList, "acls").items

    def get(self, acl: str) -> AclAnswer:
        return self._get(AclAnswer, "acls", acl)

    def create(self, name: str, *, idempotency_key: str = "") -> AclAnswer:
        return self._create(AclAnswer, "acls", body=AclRequest(name=name), idempotency_key=idempotency_key)

    def delete(self, acl: str) -> None:
        self._send("DELETE", "acls", acl)

    def add(self, acl: str, request: AclRuleRequest) -> AclAnswer:
        return self._act("POST", AclAnswer, "acls", acl, "rules", body=request)

    def remove(self, acl: str, direction: str, number: int) -> AclAnswer:
        return self._act("DELETE", AclAnswer, "acls", acl, "rules", direction, str(number))

    def attach(self, acl: str, *, network: str = "default", subnet: str = "default") -> AclAnswer:
        return self._act("PUT", AclAnswer, "acls", acl, "attached", network=network, subnet=subnet)

    def detach(self, acl: str, *, network: str = "default", subnet: str = "default") -> AclAnswer:
        return self._act("DELETE", AclAnswer, "acls", acl, "attached", network=network, subnet=subnet)
