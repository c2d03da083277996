"""A project's monthly budget, and the operator's cap."""

from teraflock.client.noun import Noun
from teraflock.wire.budget import BudgetAnswer, BudgetRequest, CapRequest


class Budgets(Noun):
    def get(self) -> BudgetAnswer:
        return self._get(BudgetAnswer, "budget")

    def set(self, request: BudgetRequest) -> BudgetAnswer:
        return self._act("PUT", BudgetAnswer, "budget", body=request)

    def remove(self) -> None:
        self._send("DELETE", "budget")

    def set_cap(self, request: CapRequest | None) -> BudgetAnswer | None:
        """Set the cap. None removes it."""
        if request is None:
            self._send("DELETE", "budget", "cap")
            return None
        return self._act("PUT", BudgetAnswer, "budget", "cap", body=request)
