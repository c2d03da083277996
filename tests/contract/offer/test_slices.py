"""`tera plan --gpu 'A100 1g.10gb'`: only slices of that size, and without a slice only whole GPUs."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.unit.offer.catalogs import own
from tests.unit.offer.random_offers import RATES

from teraflock.base.clock import FixedClock
from teraflock.offer.imports import import_offers
from teraflock.offer.tally import Origin
from teraflock.plan.answer import answer
from teraflock.plan.words import PlanWords
from teraflock.storage.database import Database

CLOCK = FixedClock(datetime(2026, 11, 15, 12, tzinfo=UTC))


@pytest.mark.parametrize(
    ("gpu", "types"),
    [
        ("A100 1g.10gb", {"A100 1g.10gb"}),
        ("A100 3g.40gb", {"A100 3g.40gb"}),
        ("A100", {"A100 80GB"}),
        ("H100 1g.10gb", set()),
    ],
)
def test_a_named_slice_is_planned_as_that_slice(
    database: Database, tmp_path: Path, gpu: str, types: set[str]
) -> None:
    names = ("A100 1g.10gb", "A100 3g.40gb", "A100 80GB")
    rows = [{"gpu": name, "instance_type": name, "price": "1", "mode": "on-demand"} for name in names]
    file = own(tmp_path / "mine.csv", rows)
    origin = Origin(source="mine", layout="teraflock", path=file, day_of=lambda each: "2026-11-15")
    import_offers(database, RATES, CLOCK, origin)
    asked = PlanWords(hours=10, gpu=(gpu,), source=("mine",))
    found = {each.shape.instance_type for each in answer(asked, database, RATES, CLOCK).plan.choices}
    assert found == types
