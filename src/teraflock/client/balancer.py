"""Load balancers of a project."""

from teraflock.client.noun import Noun
from teraflock.wire.balancer import BackendsRequest, BalancerAnswer, BalancerList, BalancerRequest

_PATH = "balancers"


class Balancers(Noun):
    def list(self) -> tuple[BalancerAnswer, ...]:
        return self._get(BalancerList, _PATH).items

    def get(self, balancer: str) -> BalancerAnswer:
        """One balancer, with what it reports."""
        return self._get(BalancerAnswer, _PATH, balancer)

    def create(self, request: BalancerRequest, *, idempotency_key: str = "") -> BalancerAnswer:
        return self._create(BalancerAnswer, _PATH, body=request, idempotency_key=idempotency_key)

    def delete(self, balancer: str) -> None:
        self._send("DELETE", _PATH, balancer)

    def add(self, balancer: str, instances: tuple[str, ...]) -> BalancerAnswer:
        body = BackendsRequest(instances=instances)
        return self._act("POST", BalancerAnswer, _PATH, balancer, "backends", body=body)

    def remove(self, balancer: str, instances: tuple[str, ...]) -> BalancerAnswer:
        body = BackendsRequest(instances=instances)
        return self._act("POST", BalancerAnswer, _PATH, balancer, "backends", "remove", body=body)
