"""The check `accounts` of `tera doctor`."""

from types import SimpleNamespace
from typing import Any

import pytest

from teraflock.app.installation.health import HealthVerdict
from teraflock.app.installation.orphans import accounts, summary
from teraflock.base.errors import Forbidden, Unavailable
from teraflock.wire.account import OrphanAnswer


def orphan(kind: str, micros: int | None, currency: str = "USD") -> OrphanAnswer:
    return OrphanAnswer(kind=kind, remote_id="r", name="n", micros_per_hour=micros, currency=currency)


class Accounts:
    def __init__(self, orphans: dict[str, Any]) -> None:
        self._orphans = orphans

    def list(self) -> list[Any]:
        return [SimpleNamespace(name=name) for name in self._orphans]

    def orphans(self, name: str) -> Any:
        found = self._orphans[name]
        if isinstance(found, Exception):
            raise found
        return found


def client(**orphans: Any) -> Any:
    return SimpleNamespace(accounts=Accounts(orphans))


def test_orphans_are_counted_with_their_cost_per_hour() -> None:
    machines = (orphan("machine", 750_000), orphan("machine", 250_000), orphan("ssh-key", None, ""))
    found = accounts(client(lambda_main=machines, aws=()))
    assert found.verdict == HealthVerdict.WARNING
    assert found.seen == "lambda_main: orphans: 2 machines, 1 ssh-key, 1.00 USD per hour"
    assert "tera account sweep lambda_main" in found.repair


def test_costs_in_several_currencies_are_not_added() -> None:
    text = summary((orphan("machine", 10**6), orphan("disk", 2 * 10**6, "CNY")))
    assert text.endswith("per hour")
    assert " and " in text


@pytest.mark.parametrize(
    ("orphans", "verdict"),
    [
        ({}, HealthVerdict.SKIPPED),
        ({"one": ()}, HealthVerdict.OK),
        ({"one": Unavailable("The provider does not answer")}, HealthVerdict.WARNING),
    ],
)
def test_accounts_without_orphans(orphans: dict[str, Any], verdict: HealthVerdict) -> None:
    assert accounts(client(**orphans)).verdict == verdict


def test_a_tenant_is_told_that_it_is_for_operators() -> None:
    def refuse() -> None:
        raise Forbidden("For operators")

    asked: Any = SimpleNamespace(accounts=SimpleNamespace(list=refuse))
    assert accounts(asked).verdict == HealthVerdict.SKIPPED
