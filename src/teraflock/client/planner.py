"""The planner: GPU models, offers, providers, exchange rates, estimates and plans. Nothing here changes the server.

Types are loaded by the method that needs them: a cold `tera ps` must not load the planner.
"""

from typing import TYPE_CHECKING

from teraflock.client.transport import Transport, path_of

if TYPE_CHECKING:
    from teraflock.estimate.model import Estimate
    from teraflock.offer.words import OfferWords
    from teraflock.wire.estimate import EstimateRequest
    from teraflock.wire.gpu import GpuShape
    from teraflock.wire.offer import OfferShape
    from teraflock.wire.plan import PlanRequest, PlanShape
    from teraflock.wire.provider import ProviderShape
    from teraflock.wire.rate import RateShape


class Planner(Transport):
    def gpus(self, name: str = "") -> "list[GpuShape]":
        from teraflock.wire.gpu import GpuShape

        return self.get(path_of("gpus"), list[GpuShape], name=name)

    def offers(
        self, words: "OfferWords | None" = None, *, limit: int = 50, refused: bool = False
    ) -> "list[OfferShape]":
        """Offers, cheapest first: `client.offers(OfferWords(gpu=("V100",)), limit=5)`."""
        from msgspec.structs import asdict

        from teraflock.wire.offer import OfferShape

        filters = asdict(words) if words else {}
        return self.get(path_of("offers"), list[OfferShape], **filters, limit=limit, refused=refused)

    def providers(self, name: str = "") -> "list[ProviderShape]":
        from teraflock.wire.provider import ProviderShape

        return self.get(path_of("providers"), list[ProviderShape], name=name)

    def rates(self) -> "list[RateShape]":
        from teraflock.wire.rate import RateShape

        return self.get(path_of("rates"), list[RateShape])

    def estimate(self, request: "EstimateRequest") -> "Estimate":
        from teraflock.estimate.model import Estimate

        return self.act("POST", path_of("estimates"), Estimate, request)

    def plan(self, request: "PlanRequest") -> "PlanShape":
        """Where nothing fits, the plan has no choices and `no_plan` says why."""
        from teraflock.wire.plan import PlanShape

        return self.act("POST", path_of("plans"), PlanShape, request)
