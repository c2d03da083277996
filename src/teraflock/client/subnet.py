"""Subnets of a project's networks."""

from teraflock.client.noun import Noun
from teraflock.wire.subnet import SubnetAnswer, SubnetList, SubnetRequest


class Subnets(Noun):
    def list(self, *, network: str = "") -> tuple[SubnetAnswer, ...]:
        return self._get(SubnetList, "subnets", network=network).items

    def get(self, network: str, subnet: str) -> SubnetAnswer:
        return self._get(SubnetAnswer, "subnets", network, subnet)

    def create(self, request: SubnetRequest, *, idempotency_key: str = "") -> SubnetAnswer:
        return self._create(SubnetAnswer, "subnets", body=request, idempotency_key=idempotency_key)

    def delete(self, network: str, subnet: str) -> None:
        self._send("DELETE", "subnets", network, subnet)
