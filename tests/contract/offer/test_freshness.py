"""Older prices of the same machine lose against newer ones, and prices far from all others are flagged."""

from datetime import UTC, date, datetime
from pathlib import Path

import pytest
from tests.unit.offer.catalogs import Cells, own
from tests.unit.offer.random_offers import RATES

from teraflock.base.clock import FixedClock
from teraflock.base.errors import BadInput
from teraflock.catalog.places import place_filter
from teraflock.offer import store
from teraflock.offer.imports import import_offers
from teraflock.offer.model import Offer, Query
from teraflock.offer.place import store as place_store
from teraflock.offer.service import OfferService
from teraflock.offer.tally import Origin, Report
from teraflock.storage.database import Database

CLOCK = FixedClock(datetime(2026, 11, 15, 12, tzinfo=UTC))


def imported(database: Database, path: Path, rows: list[Cells], day: str, source: str) -> Report:
    file = own(path / f"{source}.csv", rows)
    origin = Origin(source=source, layout="teraflock", path=file, day_of=lambda each: day)
    return import_offers(database, RATES, CLOCK, origin)


def outdated(database: Database) -> set[tuple[str, str, str]]:
    with database.read() as tx:
        return {(o.source, o.instance_type, o.region) for o in store.every(tx) if o.outdated}


def row(instance_type: str = "", region: str = "", price: str = "1", **more: object) -> Cells:
    return {
        "provider": "aws",
        "gpu": "T4",
        "instance_type": instance_type,
        "region": region,
        "price": price,
        **more,
    }


def test_the_same_machine_in_the_same_region_is_outdated(database: Database, tmp_path: Path) -> None:
    imported(database, tmp_path, [row("g4", "r1"), row("g4", "r2"), row("g5", "r1")], "2026-01-01", "old")
    imported(database, tmp_path, [row("g4", "r1", "9"), row("g6", "r1")], "2026-08-22", "new")
    assert outdated(database) == {("old", "g4", "r1")}


def test_surveys_without_type_or_region_are_outdated_by_any(database: Database, tmp_path: Path) -> None:
    old = [
        row(),
        row("g4"),
        row("guess", flags="inferred:name"),
        row("other", "r1"),
        row(mode="spot"),
        row(gpu_count=2),
    ]
    imported(database, tmp_path, old, "2019-01-01", "survey")
    imported(database, tmp_path, [row("g4", "r1")], "2026-08-22", "new")
    with database.read() as tx:
        found = [o for o in store.every(tx) if o.outdated]
    assert sorted((o.instance_type, o.gpu_count, o.mode) for o in found) == [
        ("", 1, "on-demand"), ("g4", 1, "on-demand"), ("guess", 1, "on-demand"),
    ]  # fmt: skip


def test_a_later_survey_outdates_an_earlier_one(database: Database, tmp_path: Path) -> None:
    imported(database, tmp_path, [row("g4"), row("g4", "r1")], "2019-01-01", "old")
    imported(database, tmp_path, [row()], "2022-07-01", "new")
    assert outdated(database) == {("old", "g4", "")}


@pytest.mark.parametrize(
    ("day", "more"),
    [("", {}), ("2026-01-01", {"price": ""}), ("2026-01-01", {"flags": "from-price"}), ("2025", {})],
)
def test_only_a_sure_price_of_a_later_date_outdates(
    database: Database, tmp_path: Path, day: str, more: dict[str, object]
) -> None:
    imported(database, tmp_path, [row("g4", "r1")], "2025-06-01", "old")
    imported(database, tmp_path, [{**row("g4", "r1"), **more}], day, "new")
    assert not any(source == "old" for source, _, _ in outdated(database))


def test_outdated_offers_are_hidden_and_counted(database: Database, tmp_path: Path) -> None:
    imported(database, tmp_path, [row("g4", "r1")], "2026-01-01", "old")
    imported(database, tmp_path, [row("g4", "r1", "2")], "2026-08-22", "new")
    service = OfferService(database, RATES, CLOCK)
    found = service.search(Query(), limit=None)
    assert [o.source for o in found.offers] == ["new"]
    assert ("with an outdated price", 1) in found.left_out
    assert len(service.search(Query(outdated=True), limit=None).offers) == 2
    assert len(service.search(Query(as_of=date(2026, 1, 2)), limit=None).offers) == 1, "the past is as it was"


def test_an_offer_is_fresh_again_when_the_newer_source_drops_it(database: Database, tmp_path: Path) -> None:
    imported(database, tmp_path, [row("g4", "r1")], "2026-01-01", "old")
    imported(database, tmp_path, [row("g4", "r1")], "2026-08-22", "new")
    assert outdated(database)
    imported(database, tmp_path, [row("g9", "r1")], "2026-09-01", "new")
    assert outdated(database) == set()


def test_too_many_places_are_refused_in_words(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    imported(database, tmp_path, [row("g4", f"us-{i}") for i in range(4)], "2026-01-01", "mine")
    query = Query(places=place_filter(("US",), (), ()))
    service = OfferService(database, RATES, CLOCK)
    assert service.search(query, limit=None).matched == 4
    monkeypatch.setattr(place_store, "PLACES_MAX", 3)
    with pytest.raises(BadInput, match="More than 3 places match"):
        service.search(query, limit=None)


def far(database: Database) -> list[Offer]:
    with database.read() as tx:
        return [offer for offer in store.every(tx) if "far:price" in offer.flags]


def test_a_price_far_from_its_peers_is_flagged(database: Database, tmp_path: Path) -> None:
    peers: list[Cells] = [
        {"provider": name, "gpu": "H100", "price": price, "instance_type": name}
        for name, price in (("aws", "3"), ("gcp", "4"), ("oci", "2.5"), ("azure", "7"))
    ]
    wrong: Cells = {"provider": "runpod", "gpu": "H100", "price": "900", "instance_type": "wrong"}
    fine: Cells = {"provider": "runpod", "gpu": "H100", "price": "2", "instance_type": "fine"}
    low: Cells = {"provider": "lambda", "gpu": "H100", "price": "0.05", "instance_type": "low"}
    report = imported(database, tmp_path, [*peers, wrong, fine, low], "2026-08-22", "mine")
    assert report.far_prices == 2
    assert {offer.instance_type for offer in far(database)} == {"wrong", "low"}
    again = imported(database, tmp_path, [*peers, wrong, fine, low], "2026-08-22", "mine")
    assert (again.far_prices, again.changed, again.new) == (2, 0, 0)


def test_without_enough_peers_no_price_is_flagged(database: Database, tmp_path: Path) -> None:
    rows: list[Cells] = [
        {"provider": name, "gpu": "H100", "price": price} for name, price in (("aws", "3"), ("gcp", "900"))
    ]
    assert imported(database, tmp_path, rows, "2026-08-22", "mine").far_prices == 0
    assert far(database) == []
