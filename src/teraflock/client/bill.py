"""Bills: the total of a month, its lines and export, current prices, and verification."""

from collections.abc import Iterator
from typing import Final

from teraflock.client.noun import PAGE, Noun, pages
from teraflock.client.transport import path_of
from teraflock.wire.bill import (
    BillAnswer,
    CostAnswer,
    CostPage,
    LineAnswer,
    LinePage,
    MarginAnswer,
    VerdictAnswer,
)

LONG_SECONDS: Final = 600.0  # for verifying and exporting many charges


class Bills(Noun):
    def get(self, *, month: str = "", by: str = "gpu", label: str = "") -> BillAnswer:
        return self._get(BillAnswer, "bill", month=month, by=by, label=label)

    def line_page(
        self, *, month: str = "", after: str = "", limit: int = PAGE, instance: str = ""
    ) -> LinePage:
        """`instance` is an id: only its charges."""
        return self._get(LinePage, "bill", "lines", month=month, after=after, limit=limit, instance=instance)

    def lines(self, *, month: str = "") -> tuple[LineAnswer, ...]:
        return pages(lambda after: self.line_page(month=month, after=after))

    def focus(self, *, month: str = "") -> Iterator[bytes]:
        """CSV with the columns of FOCUS 1.2, in pieces as they arrive."""
        return self._transport.pieces(path_of("bill", "focus"), self._query({"month": month}), LONG_SECONDS)

    def verify(self) -> VerdictAnswer:
        content = self._transport.request("POST", path_of("bill", "verify"), seconds_max=LONG_SECONDS)
        return self._transport.decoded(content, VerdictAnswer)

    def margin(self, *, month: str = "", by: str = "project") -> MarginAnswer:
        """Revenue, cost and margin over all tenants. For operators."""
        query = {"month": month, "by": by}
        content = self._transport.request(
            "GET", path_of("bill", "margin"), query=query, seconds_max=LONG_SECONDS
        )
        return self._transport.decoded(content, MarginAnswer)

    def cost_page(
        self, *, after: str = "", limit: int = PAGE, states: tuple[str, ...] = (), name: str = ""
    ) -> CostPage:
        """The costs of the instances that `client.instances.page` lists with the same arguments."""
        return self._get(CostPage, "costs", after=after, limit=limit, state=states, name=name)

    def costs(self) -> tuple[CostAnswer, ...]:
        """The hourly price of each instance, and what it has cost so far."""
        return pages(lambda after: self.cost_page(after=after))
