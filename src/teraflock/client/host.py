"""Hosts, for operators."""

from teraflock.client.noun import PAGE, Noun, pages
from teraflock.wire.host import (
    HostAnswer,
    HostChange,
    HostCostAnswer,
    HostCostPage,
    HostCostRequest,
    HostPage,
    InvitationAnswer,
    InvitationRequest,
    SlicingAnswer,
    SlicingPage,
    SlicingRequest,
)


class Hosts(Noun):
    in_project = False

    def page(self, *, after: str = "", limit: int = PAGE, kind: str = "own") -> HostPage:
        """`kind` is `own`, `rented` or `all`."""
        return self._get(HostPage, "hosts", after=after, limit=limit, kind=kind)

    def list(self, *, kind: str = "own") -> tuple[HostAnswer, ...]:
        return pages(lambda after: self.page(after=after, kind=kind))

    def get(self, ref: str) -> HostAnswer:
        return self._get(HostAnswer, "hosts", ref)

    def change(self, ref: str, change: HostChange) -> HostAnswer:
        return self._act("PATCH", HostAnswer, "hosts", ref, body=change)

    def slicings(self, ref: str) -> tuple[SlicingAnswer, ...]:
        """The cards that were divided, or made whole again."""
        return self._get(SlicingPage, "hosts", ref, "slices").items

    def divide(self, ref: str, card: str, profiles: tuple[str, ...]) -> tuple[SlicingAnswer, ...]:
        """Divide a card into slices. Without profiles, make it whole."""
        body = SlicingRequest(profiles=profiles)
        return self._act("PUT", SlicingPage, "hosts", ref, "slices", card, body=body).items

    def invite(self, request: InvitationRequest) -> InvitationAnswer:
        return self._create(InvitationAnswer, "host-invitations", body=request)

    def remove(self, ref: str) -> None:
        self._send("DELETE", "hosts", ref)

    def cost_page(self, *, after: str = "", limit: int = PAGE) -> HostCostPage:
        return self._get(HostCostPage, "host-costs", after=after, limit=limit)

    def costs(self) -> tuple[HostCostAnswer, ...]:
        """What operators recorded as the cost of own hosts, in the order it was recorded."""
        return pages(lambda after: self.cost_page(after=after))

    def set_cost(self, ref: str, cost: HostCostRequest) -> HostCostAnswer:
        return self._act("PUT", HostCostAnswer, "hosts", ref, "cost", body=cost)
