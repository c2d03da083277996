"""`tera plan --available`: only what providers listed as free in the last minutes."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.unit.offer.catalogs import own
from tests.unit.offer.random_offers import RATES

from teraflock.base.clock import FixedClock
from teraflock.base.errors import BadInput
from teraflock.offer.imports import import_offers
from teraflock.offer.tally import Origin
from teraflock.plan.answer import answer
from teraflock.plan.words import PlanWords
from teraflock.storage.database import Database

NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)


def imported(
    database: Database, path: Path, source: str, provider: str, price: str, minutes_ago: int
) -> None:
    row = {
        "provider": provider,
        "gpu": "T4",
        "instance_type": f"{provider}-t4",
        "region": "r1",
        "price": price,
    }
    file = own(path / f"{source}.csv", [row])
    origin = Origin(source=source, layout="teraflock", path=file, day_of=lambda each: "2026-11-15")
    import_offers(database, RATES, FixedClock(NOW - timedelta(minutes=minutes_ago)), origin)


def planned(database: Database, **words: object) -> list[str]:
    asked = PlanWords(hours=10, gpu=("T4",), **words)  # type: ignore[arg-type]
    return [each.shape.provider for each in answer(asked, database, RATES, FixedClock(NOW)).plan.choices]


def test_only_fresh_listings_of_free_machines_are_planned(database: Database, tmp_path: Path) -> None:
    imported(database, tmp_path, "skypilot", "gcp", "1", 1)
    imported(database, tmp_path, "live-aws", "aws", "2", 1)  # lists what it sells, free or not
    imported(database, tmp_path, "live-vast", "vast", "3", 16)
    assert set(planned(database)) == {"gcp", "aws", "vast"}
    with pytest.raises(BadInput, match="No provider was asked in the last 15 minutes"):
        planned(database, available=True)
    imported(database, tmp_path, "live-lambda", "lambda", "4", 14)
    assert planned(database, available=True) == ["lambda"]
    with pytest.raises(BadInput, match="`--available` names the sources itself"):
        planned(database, available=True, source=("skypilot",))
