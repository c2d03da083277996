"""Imports on both databases: atomic, idempotent, and past prices are kept with their dates."""

import csv
import shutil
from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from math import prod
from pathlib import Path
from random import Random
from threading import Barrier, Thread

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from tests.unit.offer.catalogs import Cells, gpuhunt, machine, own, skypilot
from tests.unit.offer.random_offers import RATES

from teraflock.base.clock import FixedClock
from teraflock.base.errors import BrokenSource, Refused, StorageFailed
from teraflock.base.events import new_event
from teraflock.offer import imports, store
from teraflock.offer.imports import REMOVED_FEW, SHIPPED_PATH, ensure_shipped, import_offers
from teraflock.offer.model import WITH_GPU, Kind, Offer, Query, Source
from teraflock.offer.question import store as question_store
from teraflock.offer.service import OfferService, Point
from teraflock.offer.source import store as source_store
from teraflock.offer.tally import Origin, Report
from teraflock.storage.database import Database, Transaction
from teraflock.storage.events import events_after, record_event

CLOCK = FixedClock(datetime(2026, 11, 15, 12, tzinfo=UTC))
MONTH = 730


def imported(
    database: Database, path: Path, as_of: str, source: str = "mine", layout: str = "teraflock"
) -> Report:
    origin = Origin(source=source, layout=layout, path=path, day_of=lambda file: as_of)
    return import_offers(database, RATES, CLOCK, origin)


def standing(database: Database) -> list[Offer]:
    with database.read() as tx:
        return sorted(store.every(tx), key=lambda offer: (offer.source, offer.id))


def past(database: Database, *, as_of: date) -> list[Offer]:
    """Return the past prices that were current on a date."""
    with database.read() as tx:
        return [
            offer
            for offer in question_store.search(tx, Query(as_of=as_of, refused=True), RATES, as_of)
            if offer.until
        ]


def past_rows(database: Database) -> int:
    with database.read() as tx:
        row = tx.one("SELECT COUNT(*) FROM offer_past")
    assert row is not None
    return int(row[0])


def everything(database: Database) -> tuple[list[Offer], int, list[Source]]:
    with database.read() as tx:
        sources = source_store.sources(tx)
    return standing(database), past_rows(database), sources


def priced(prices: dict[str, str], **more: object) -> list[Cells]:
    """Return rows in our own layout from instance types and prices in dollars per hour."""
    return [{"instance_type": name, "price": price, **more} for name, price in prices.items()]


def prices_of(offers: Iterable[Offer]) -> dict[str, float | None]:
    return {
        offer.instance_type: None
        if offer.price_micros_per_month is None
        else offer.price_micros_per_month / MONTH / 1e6
        for offer in offers
    }


# --- replacing offers ----------------------------------------------------------------------------------------------


def test_an_import_replaces_the_previous_one(database: Database, tmp_path: Path) -> None:
    first = own(tmp_path / "a.csv", priced({"small": "0.5", "large": "2"}))
    second = own(tmp_path / "b.csv", priced({"small": "0.5", "huge": "9"}))
    other = own(tmp_path / "c.csv", priced({"theirs": "1"}))
    report = imported(database, first, "2026-01-01")
    assert (report.rows_read, report.offers_taken, report.new, report.changed, report.gone) == (2, 2, 2, 0, 0)
    imported(database, other, "2026-01-02", source="other")
    report = imported(database, second, "2026-02-01")
    assert (report.rows_read, report.offers_taken, report.new, report.changed, report.gone) == (2, 2, 1, 0, 1)
    assert prices_of(standing(database)) == {"small": 0.5, "huge": 9, "theirs": 1}


def test_an_import_of_a_part_removes_most_offers_only_if_it_may(database: Database, tmp_path: Path) -> None:
    whole = {f"type-{i}": "1" for i in range(REMOVED_FEW + 2)}
    imported(database, own(tmp_path / "a.csv", priced(whole)), "2026-01-01")
    before = everything(database)
    part = own(tmp_path / "b.csv", priced({"type-0": "1"}))
    origin = Origin(source="mine", layout="teraflock", path=part, day_of=lambda file: "2026-02-01")
    with pytest.raises(Refused, match=f"remove {REMOVED_FEW + 1} of the {REMOVED_FEW + 2} offers"):
        import_offers(database, RATES, CLOCK, origin, may_remove_most=False)
    assert everything(database) == before
    assert import_offers(database, RATES, CLOCK, origin).gone == REMOVED_FEW + 1


@pytest.mark.parametrize("layout", ["skypilot", "gpuhunt", "teraflock"])
def test_every_layout_is_replaced_completely(database: Database, tmp_path: Path, layout: str) -> None:
    """No row of the old folder is left."""
    for folder, cards in (("old", ("T4", "A10")), ("new", ("A10", "L4"))):
        for i, card in enumerate(cards):
            if layout == "skypilot":
                skypilot(tmp_path / folder, f"cloud{i}", [machine(card, 1, 0, GpuInfo=card)])
            elif layout == "gpuhunt":
                row = {"gpu_name": card, "gpu_count": 1, "price": "1"}
                gpuhunt(tmp_path / folder / f"cloud{i}.csv", [row])
            else:
                own(tmp_path / folder / f"cloud{i}.csv", [{"gpu": card, "price": "1"}])
        imported(database, tmp_path / folder, "2026-01-01", layout=layout)
        assert {offer.gpu for offer in standing(database)} == set(cards)


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**32))
def test_importing_twice_equals_importing_once(database: Database, tmp_path: Path, seed: int) -> None:
    random = Random(seed)
    database.write(_forget_all)
    file = own(tmp_path / "mine.csv", [_random_row(random) for _ in range(random.randrange(1, 30))])
    try:
        first = imported(database, file, "2026-01-01")
    except BrokenSource:
        return  # nothing in it could be imported
    once = standing(database)
    second = imported(database, file, random.choice(("2026-01-01", "2026-03-01")))
    assert (second.new, second.changed, second.gone) == (0, 0, 0)
    assert (second.rows_read, second.offers_taken) == (first.rows_read, first.offers_taken)
    assert past_rows(database) == 0
    twice = standing(database)
    assert [(o.id, o.price_micros_per_month, o.since, o.until) for o in twice] == [
        (o.id, o.price_micros_per_month, o.since, o.until) for o in once
    ]
    if second.as_of == first.as_of:
        assert twice == once


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**32))
@example(seed=135)  # one offer of each source is outdated by the other's
def test_counts_match_the_offers_after_any_imports(database: Database, tmp_path: Path, seed: int) -> None:
    random = Random(seed)
    database.write(_forget_all)
    for _ in range(4):
        file = own(tmp_path / "mine.csv", [_random_row(random) for _ in range(random.randrange(12))])
        with suppress(BrokenSource):
            imported(database, file, "2026-01-01", source=random.choice(("mine", "other")))
    offers = standing(database)
    with database.read() as tx:
        kinds: tuple[Kind, ...]
        for kinds in (WITH_GPU, ("none",), ("gpu",)):
            summary = question_store.summarise(tx, Query(kinds=kinds), RATES, date(2026, 11, 15))
            of_kind = [offer for offer in offers if offer.kind in kinds]
            current = [offer for offer in of_kind if not offer.outdated]
            shown = [offer for offer in current if offer.standing != "refused"]
            counts = (len(shown), len(current) - len(shown), len(of_kind) - len(current))
            assert (summary.matched, summary.refused, summary.outdated) == counts
            assert summary.newest == max((offer.as_of for offer in shown), default="")
        assert sum(source.offers for source in source_store.sources(tx)) == len(offers)


def _forget_all(tx: Transaction) -> None:
    for table in ("offer", "offer_past", "offer_source", "offer_count", "offer_shape"):
        tx.run(f"DELETE FROM {table}")


def _random_row(random: Random) -> Cells:
    return {
        "provider": random.choice(("aws", "gcp")),
        "instance_type": random.choice(("", "small")),
        "gpu": random.choice(("T4", "V100", "", "Voodoo 9000")),
        "gpu_count": random.choice(("", "1", "2")),
        "mode": random.choice(("on-demand", "spot", "")),
        "price": random.choice(("", "0", "0.01", "0.5", "3", "-1", "x")),
        "currency": random.choice(("USD", "CNY", "XXX")),
        "as_of": random.choice(("", "2019", "2022-07-01")),
    }


# --- past prices ---------------------------------------------------------------------------------------------------


def test_a_changed_price_is_kept_with_its_dates(database: Database, tmp_path: Path) -> None:
    file = tmp_path / "mine.csv"
    for as_of, price in (("2026-01-01", "1"), ("2026-02-01", "1"), ("2026-03-01", "3"), ("2026-05-01", "2")):
        imported(database, own(file, priced({"box": price})), as_of)
    (now,) = standing(database)
    assert (now.since, now.as_of, now.until) == ("2026-05-01", "2026-05-01", "")
    assert past_rows(database) == 2
    for day, held, since, until in (
        (date(2026, 2, 28), 1.0, "2026-01-01", "2026-03-01"),
        (date(2026, 3, 1), 3.0, "2026-03-01", "2026-05-01"),
        (date(2026, 4, 30), 3.0, "2026-03-01", "2026-05-01"),
    ):
        (offer,) = past(database, as_of=day)
        assert (prices_of([offer])["box"], offer.since, offer.until) == (held, since, until)
    assert past(database, as_of=date(2025, 12, 31)) == []
    assert past(database, as_of=date(2026, 5, 1)) == []


def test_an_unchanged_price_keeps_its_first_date(database: Database, tmp_path: Path) -> None:
    file = own(tmp_path / "mine.csv", priced({"box": "1"}))
    for as_of in ("2026-01-01", "2026-02-01", "2026-03-01"):
        imported(database, file, as_of)
    (offer,) = standing(database)
    assert (offer.since, offer.as_of) == ("2026-01-01", "2026-03-01")


def test_a_removed_offer_ends_with_the_import_without_it(database: Database, tmp_path: Path) -> None:
    imported(database, own(tmp_path / "a.csv", priced({"box": "1", "gone": "2"})), "2026-01-01")
    report = imported(database, own(tmp_path / "b.csv", priced({"box": "1"})), "2026-03-01")
    assert report.gone == 1
    (offer,) = past(database, as_of=date(2026, 2, 1))
    assert (offer.instance_type, offer.since, offer.until) == ("gone", "2026-01-01", "2026-03-01")
    assert past(database, as_of=date(2026, 3, 1)) == []


def test_a_price_with_its_own_date_ends_the_previous_one_on_that_date(
    database: Database, tmp_path: Path
) -> None:
    file = tmp_path / "mine.csv"
    imported(database, own(file, priced({"box": "1"}, as_of="2022-01-15")), "2026-01-01")
    imported(database, own(file, priced({"box": "2"}, as_of="2022-07")), "2026-02-01")
    (offer,) = past(database, as_of=date(2022, 6, 30))
    assert (offer.since, offer.until) == ("2022-01-15", "2022-07")
    assert past(database, as_of=date(2022, 7, 1)) == []


def test_a_change_of_currency_or_price_status_is_a_change(database: Database, tmp_path: Path) -> None:
    file = tmp_path / "mine.csv"
    imported(database, own(file, priced({"box": "1", "lost": "1"})), "2026-01-01")
    rows = [*priced({"box": "1"}, currency="CNY"), *priced({"lost": ""})]
    report = imported(database, own(file, rows), "2026-02-01")
    assert (report.changed, report.priced, report.price_unknown) == (2, 1, 1)
    assert past_rows(database) == 2


def test_history_has_a_point_for_each_day_with_new_prices(database: Database, tmp_path: Path) -> None:
    file = tmp_path / "mine.csv"
    imported(database, own(file, priced({"a": "1", "b": "2", "c": "6"})), "2026-01-01")
    imported(database, own(file, priced({"a": "1", "b": "3", "c": "5"}, gpu_count=1)), "2026-02-01")
    service = OfferService(database, RATES, CLOCK)
    assert service.history(Query(), "USD") == [
        Point("2026-01-01", 1_000_000, 2_000_000, 6_000_000, 3),
        Point("2026-02-01", 3_000_000, 5_000_000, 5_000_000, 2),
    ]
    assert service.history(Query(gpus=("A10",)), "USD") == []
    assert service.history(Query(), "CNY")[0].lowest_micros == 7_189_000


def test_history_is_per_gpu(database: Database, tmp_path: Path) -> None:
    imported(database, own(tmp_path / "mine.csv", priced({"box": "4"}, gpu_count=8)), "2026-01-01")
    (point,) = OfferService(database, RATES, CLOCK).history(Query(), "USD")
    assert point.lowest_micros == point.highest_micros == 500_000


# --- refused imports -----------------------------------------------------------------------------------------------


def test_older_prices_do_not_replace_newer_ones(database: Database, tmp_path: Path) -> None:
    imported(database, own(tmp_path / "new.csv", priced({"box": "1"})), "2026-02-01")
    before = everything(database)
    with pytest.raises(Refused, match="from 2026-01-31, older than the stored ones from 2026-02-01"):
        imported(database, own(tmp_path / "old.csv", priced({"box": "9"})), "2026-01-31")
    assert everything(database) == before


BREAKS = {
    "short row": b"provider,gpu\naws",
    "open quote": b'provider,gpu,gpu_count,mode,price,currency,per\naws,"T4',
    "not text": b"\xff\xfe\x00",
    "empty": b"",
}


@pytest.mark.parametrize("content", BREAKS.values(), ids=BREAKS.keys())
def test_a_broken_file_in_the_middle_changes_nothing(
    database: Database, tmp_path: Path, content: bytes
) -> None:
    imported(database, own(tmp_path / "good.csv", priced({"box": "1", "gone": "5"})), "2026-01-01")
    before = everything(database)
    folder = tmp_path / "catalog"
    own(folder / "a.csv", priced({f"new{i}": "2" for i in range(2500)}))  # more than one batch
    (folder / "b.csv").write_bytes(content)
    own(folder / "c.csv", priced({"last": "3"}))
    with pytest.raises(BrokenSource, match="`b.csv`"):
        imported(database, folder, "2026-02-01")
    assert everything(database) == before


def test_a_file_without_offers_changes_nothing(database: Database, tmp_path: Path) -> None:
    imported(database, own(tmp_path / "good.csv", priced({"box": "1"})), "2026-01-01")
    before = everything(database)
    for rows in ([], priced({"box": "-1"}), priced({"box": "1"}, currency="XXX")):
        with pytest.raises(BrokenSource, match="can be imported"):
            imported(database, own(tmp_path / "bad.csv", rows), "2026-02-01")
        assert everything(database) == before


def test_readers_see_the_old_catalog_until_the_import_commits(database: Database, tmp_path: Path) -> None:
    imported(database, own(tmp_path / "a.csv", priced({"box": "1"})), "2026-01-01")
    seen: list[dict[str, float | None]] = []

    def look(rows: int) -> None:
        thread = Thread(target=lambda: seen.append(prices_of(standing(database))))
        thread.start()
        thread.join()

    origin = Origin(
        source="mine",
        layout="teraflock",
        path=own(tmp_path / "b.csv", priced({f"box{i}": "2" for i in range(1100)})),
        day_of=lambda file: "2026-02-01",
    )
    import_offers(database, RATES, CLOCK, origin, progress=look)
    assert seen == [{"box": 1.0}]
    assert len(standing(database)) == 1100


def test_two_concurrent_imports_leave_one_complete_catalog(database: Database, tmp_path: Path) -> None:
    catalogs = {
        name: own(tmp_path / f"{name}.csv", priced({f"{name}{i}": "1" for i in range(300)})) for name in "ab"
    }
    start, reports = Barrier(len(catalogs)), list[Report]()

    def work(path: Path) -> None:
        start.wait()
        reports.append(imported(database, path, "2026-01-01"))

    threads = [Thread(target=work, args=(path,)) for path in catalogs.values()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted((report.new, report.gone) for report in reports) == [(300, 0), (300, 300)]
    left = {offer.instance_type[0] for offer in standing(database)}
    assert len(left) == 1
    assert len(standing(database)) == 300
    assert past_rows(database) == 300
    with database.read() as tx:
        (source,) = source_store.sources(tx)
        assert tx.all("SELECT DISTINCT import_number FROM offer") == [(source.import_number,)]


def test_an_interrupted_import_changes_nothing(database: Database, tmp_path: Path) -> None:
    imported(database, own(tmp_path / "a.csv", priced({"box": "1"})), "2026-01-01")
    before = everything(database)
    origin = Origin(
        source="mine",
        layout="teraflock",
        path=own(tmp_path / "b.csv", priced({f"box{i}": "2" for i in range(1500)})),
        day_of=lambda file: "2026-02-01",
    )

    def interrupted(rows: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        import_offers(database, RATES, CLOCK, origin, progress=interrupted)
    assert everything(database) == before


# --- report and source ---------------------------------------------------------------------------------------------


def test_the_report_accounts_for_every_row(database: Database, tmp_path: Path) -> None:
    rows: list[Cells] = [
        {"instance_type": "good"},
        {"instance_type": "unknown", "price": ""},
        {"instance_type": "zero", "price": "0"},
        {"instance_type": "cent", "price": "0.01"},
        {"instance_type": "cents", "price": "0.012"},
        {"instance_type": "odd", "gpu": "Voodoo 9000"},
        *({"instance_type": f"bad{i}", "price": "x"} for i in range(5)),
        {"instance_type": "uncounted", "gpu_count": ""},
    ]
    report = imported(database, own(tmp_path / "mine.csv", rows), "2026-01-01")
    assert (report.rows_read, report.offers_taken, report.priced, report.price_unknown) == (12, 6, 2, 1)
    assert [(each.reason, each.rows) for each in report.rejected] == [
        ("a price or another figure is not a number", 5),
        ("a GPU has a price but no count", 1),
    ]
    assert report.rejected[0].examples == ("mine.csv, line 8", "mine.csv, line 9", "mine.csv, line 10")
    assert [(each.reason, each.rows) for each in report.refused] == [
        ("the price is implausibly low", 2),
        ("the price is zero", 1),
    ]
    assert report.unknown_gpus == (("Voodoo 9000", 1),)


def test_an_import_is_listed_after_older_events(database: Database, tmp_path: Path) -> None:
    older = new_event("host.lost", "hst_1", CLOCK.now() - timedelta(hours=1), Random(1).randbytes, {})
    database.write(lambda tx: record_event(tx, older))
    imported(database, own(tmp_path / "a.csv", priced({"box": "1"})), "2026-01-01")
    with database.read() as tx:
        assert [each.kind for each in events_after(tx, older.id, limit=10)] == ["offers.imported"]


def test_only_a_successful_import_records_an_event(database: Database, tmp_path: Path) -> None:
    imported(database, own(tmp_path / "a.csv", priced({"box": "1", "gone": "2"})), "2026-01-01")
    imported(database, own(tmp_path / "b.csv", priced({"box": "3"})), "2026-02-01")
    with pytest.raises(BrokenSource):
        imported(database, own(tmp_path / "c.csv", []), "2026-03-01")
    with database.read() as tx:
        events = events_after(tx, None, limit=10)
    assert {(event.kind, event.subject) for event in events} == {("offers.imported", "mine")}
    assert sorted(event.details["as_of"] for event in events) == ["2026-01-01", "2026-02-01"]  # type: ignore[type-var]
    (second,) = (event for event in events if event.details["as_of"] == "2026-02-01")
    assert second.details == {"as_of": "2026-02-01", "offers": 1, "new": 0, "changed": 1, "gone": 1}


def test_an_import_from_a_file_keeps_the_url_of_the_source(database: Database, tmp_path: Path) -> None:
    file = own(tmp_path / "mine.csv", priced({"box": "1"}))
    origin = Origin(
        source="mine", layout="teraflock", path=file, day_of=lambda file: "2026-01-01", checksum="c",
        url="https://x.example/p.csv", etag='"e"', last_modified="then",
    )  # fmt: skip
    import_offers(database, RATES, CLOCK, origin)
    imported(database, file, "2026-01-02")
    with database.read() as tx:
        source = source_store.source(tx, "mine")
    assert source is not None
    assert (source.url, source.place) == ("https://x.example/p.csv", str(file))
    assert (source.etag, source.last_modified, source.checksum) == (
        "",
        "",
        "",
    )  # so that the next refresh downloads it


# --- shipped offers ------------------------------------------------------------------------------------------------


def test_every_shipped_row_is_in_the_database(database: Database) -> None:
    ensure_shipped(database, RATES, CLOCK)
    with Path(SHIPPED_PATH).open(encoding="utf-8", newline="") as file:
        rows = {row["cited"]: row for row in csv.DictReader(file)}
    assert len(rows) == 105
    by_row: dict[str, list[Offer]] = {}
    for offer in standing(database):
        by_row.setdefault(offer.cited, []).append(offer)
    assert by_row.keys() == rows.keys()
    for cited, row in rows.items():
        offers = by_row[cited]
        several = [len(row[name].split("|")) for name in ("gpu", "gpu_count", "mode")]
        assert len(offers) == prod(several), cited
        for offer in offers:
            assert (offer.quoted.micros / 1e6 if offer.quoted else None) == _number(row["price"]), cited
            assert offer.currency == row["currency"], cited
            assert offer.quoted is None or offer.quoted.per == row["per"], cited
            assert (offer.vcpus, offer.as_of) == (_number(row["vcpus"]), row["as_of"]), cited
            assert offer.ram_bytes == (round(float(row["ram_gb"]) * 2**30) if row["ram_gb"] else None), cited


def _number(text: str) -> float | None:
    return float(text) if text else None


def test_the_shipped_offers_are_imported_once(database: Database) -> None:
    ensure_shipped(database, RATES, CLOCK)
    with database.read() as tx:
        first = source_store.source(tx, "shipped")
    ensure_shipped(database, RATES, CLOCK)
    with database.read() as tx:
        assert source_store.source(tx, "shipped") == first


def test_a_new_version_replaces_the_shipped_offers_and_keeps_past_prices(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shipped = tmp_path / "offers.csv"
    monkeypatch.setattr(imports, "SHIPPED_PATH", shipped)
    own(shipped, priced({"kept": "1", "changed": "1", "gone": "1"}, as_of="2022-07"))
    ensure_shipped(database, RATES, CLOCK)
    own(shipped, [*priced({"kept": "1"}, as_of="2022-07"), *priced({"changed": "2"}, as_of="2024")])
    ensure_shipped(database, RATES, CLOCK)
    assert prices_of(standing(database)) == {"kept": 1, "changed": 2}
    until = {offer.instance_type: offer.until for offer in past(database, as_of=date(2023, 1, 1))}
    assert until == {"changed": "2024", "gone": "2026-11-15"}
    assert past(database, as_of=date(2026, 11, 15)) == []


def test_a_new_version_that_cannot_write_uses_the_old_offers(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ensure_shipped(database, RATES, CLOCK)
    before = everything(database)
    newer = tmp_path / "offers.csv"
    shutil.copy(SHIPPED_PATH, newer)
    newer.write_text(newer.read_text("utf-8").replace("5856", "5857"), "utf-8")
    monkeypatch.setattr(imports, "SHIPPED_PATH", newer)

    def full(*_: object) -> None:
        raise StorageFailed("The disk is full")

    monkeypatch.setattr(source_store, "add", full)
    ensure_shipped(database, RATES, CLOCK)
    assert everything(database) == before
    database.write(_forget_all)
    with pytest.raises(StorageFailed):
        ensure_shipped(database, RATES, CLOCK)
