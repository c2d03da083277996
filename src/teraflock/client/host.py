"""Hosts, for operators."""

from collections.abc import Sequence
from typing import Final

from teraflock.client.noun import PAGE, Noun, pages
from teraflock.client.transport import path_of
from teraflock.wire.host import (
    CardCapacityAnswer,
    HostAnswer,
    HostCapacityList,
    HostChange,
    HostCostAnswer,
    HostCostPage,
    HostCostRequest,
    HostPage,
    HostRemovedAnswer,
    HostUpgradeAnswer,
    InvitationAnswer,
    InvitationRequest,
    SlicingAnswer,
    SlicingPage,
    SlicingRequest,
)

UPGRADE_SECONDS_MAX: Final = 240.0


class Hosts(Noun):
    in_project = False

    def page(self, *, after: str = "", limit: int = PAGE, kind: str = "own") -> HostPage:
        """`kind` is `own`, `rented` or `all`."""
        return self._get(HostPage, "hosts", after=after, limit=limit, kind=kind)

    def list(self, *, kind: str = "own") -> tuple[HostAnswer, ...]:
        return pages(lambda after: self.page(after=after, kind=kind))

    def get(self, ref: str) -> HostAnswer:
        return self._get(HostAnswer, "hosts", ref)

    def capacity(self) -> tuple[CardCapacityAnswer, ...]:
        """The cards of all hosts by model: how many are free, and how they are spread."""
        return self._get(HostCapacityList, "host-capacity").items

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

    def upgrade(self, ref: str) -> HostUpgradeAnswer:
        """Install the server's version on a joined host. It takes up to a minute."""
        content = self._transport.request(
            "POST", path_of("hosts", ref, "upgrade"), again=False, seconds_max=UPGRADE_SECONDS_MAX
        )
        return self._transport.decoded(content, HostUpgradeAnswer)

    def remove(self, ref: str, *, lost: bool = False) -> HostRemovedAnswer:
        """Remove a joined host. `lost`: it will never return, and everything on it is given up."""
        return self._act("DELETE", HostRemovedAnswer, "hosts", ref, lost=lost)

    def cost_page(self, *, after: str = "", limit: int = PAGE, hosts: Sequence[str] = ()) -> HostCostPage:
        """With `hosts`, only what was recorded for hosts with these ids."""
        return self._get(HostCostPage, "host-costs", after=after, limit=limit, host=tuple(hosts))

    def costs(self, hosts: Sequence[str] = ()) -> tuple[HostCostAnswer, ...]:
        """What operators recorded as the cost of own hosts, in the order it was recorded."""
        return pages(lambda after: self.cost_page(after=after, hosts=hosts))

    def set_cost(self, ref: str, cost: HostCostRequest) -> HostCostAnswer:
        return self._act("PUT", HostCostAnswer, "hosts", ref, "cost", body=cost)
