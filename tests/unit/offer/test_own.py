"""Teraflock's own layout, which the shipped offers use too."""

import csv
from collections import Counter
from pathlib import Path

import pytest
from tests.unit.offer.catalogs import Cells, imported, own

from teraflock.base.money import Price
from teraflock.base.quantities import GIB
from teraflock.offer.importers.own import NEEDED, OPTIONAL
from teraflock.offer.imports import SHIPPED_PATH
from teraflock.offer.model import FLAGS


def test_every_column_is_read(tmp_path: Path) -> None:
    row = {
        "provider": "Tencent Cloud", "region": "Guangzhou|Beijing", "zone": "z1", "instance_type": "GN10Xp",
        "gpu": "Tesla V100 32GB", "gpu_count": "8", "gpu_memory_gb": "32", "vcpus": "80", "cpu": "Xeon",
        "ram_gb": "320", "disk_gb": "500", "network_gbps": "25", "mode": "reserved", "term_months": "12",
        "price": "5856.5", "currency": "CNY", "per": "month", "basis": "gpu", "as_of": "2019-01", "cited": "row 1",
        "flags": "inferred:name suspect:ram", "note": "a note",
    }  # fmt: skip
    assert set(row) == {*NEEDED, *OPTIONAL}
    offer = imported("teraflock", own(tmp_path / "mine.csv", [row])).one
    assert (offer.provider, offer.region, offer.zone) == ("tencent", "Guangzhou|Beijing", "z1")
    assert (offer.gpu, offer.gpu_name, offer.gpu_count) == ("V100-SXM2-32", "Tesla V100 32GB", 8)
    assert (offer.vcpus, offer.cpu, offer.ram_bytes) == (80, "Xeon", 320 * GIB)
    assert (offer.disk_gb, offer.network_gbps) == (500, 25)
    assert (offer.mode, offer.term_months) == ("reserved", 12)
    assert (offer.quoted, offer.basis) == (Price(5_856_500_000, "CNY", "month"), "gpu")
    assert offer.price_micros_per_month == 8 * 5_856_500_000
    assert (offer.since, offer.as_of, offer.cited, offer.note) == ("2019-01", "2019-01", "row 1", "a note")
    assert offer.flags == ("inferred:name", "suspect:ram", "inferred:variant", "price-per-gpu")


def test_optional_columns_may_be_missing(tmp_path: Path) -> None:
    file = tmp_path / "mine.csv"
    file.write_text(",".join(NEEDED) + "\naws,T4,1,on-demand,0.526,USD,hour\n")
    offer = imported("teraflock", file).one
    assert (offer.gpu, offer.as_of, offer.basis) == ("T4", "2026-08-22", "instance")


def test_several_cards_and_modes_give_one_offer_each(tmp_path: Path) -> None:
    row = {"gpu": "T4 | V100", "mode": "on-demand|spot", "price": "", "gpu_count": ""}
    result = imported("teraflock", own(tmp_path / "mine.csv", [row]))
    assert result.rows == 1
    assert sorted((offer.gpu, offer.mode) for offer in result.offers) == [
        ("T4", "on-demand"),
        ("T4", "spot"),
        ("V100-SXM2", "on-demand"),
        ("V100-SXM2", "spot"),
    ]


@pytest.mark.parametrize(
    ("cells", "reason"),
    [
        ({"provider": " "}, "the provider is missing"),
        ({"mode": "sometimes"}, "unknown purchase mode `sometimes`"),
        ({"per": "day"}, "unknown period `day`"),
        ({"per": ""}, "unknown period ``"),
        ({"basis": "rack"}, "unknown price basis `rack`"),
        ({"flags": "suspect:memory odd"}, "unknown flag `odd`"),
        ({"as_of": "yesterday"}, "`yesterday` is not a date"),
        ({"as_of": "2019-1"}, "`2019-1` is not a date"),
        ({"as_of": "2019-13"}, "`2019-13` is not a date"),
        ({"as_of": "2019-02-30"}, "`2019-02-30` is not a date"),
        ({"as_of": "0000"}, "`0000` is not a date"),
        ({"price": "1,5"}, "a price or another figure is not a number"),
        ({"price": "1_5"}, "a price or another figure is not a number"),
        ({"gpu_count": "two"}, "a price or another figure is not a number"),
        ({"gpu_count": ""}, "a GPU has a price but no count"),
        ({"currency": "XXX"}, "no exchange rate for XXX"),
        ({"price": "-1"}, "the price is negative"),
        ({"price": "9" * 40}, "the price is out of range"),
        ({"as_of": "2099"}, "the date of the price is in the future"),
        ({"as_of": "2099-12-31"}, "the date of the price is in the future"),
        ({"mode": "reserved", "term_months": "0"}, "the term is not a number of months"),
        ({"mode": "reserved", "term_months": "-5"}, "the term is not a number of months"),
        ({"mode": "reserved", "term_months": "99999999999"}, "the term is not a number of months"),
    ],
)
def test_an_invalid_row_is_rejected_and_the_others_are_imported(
    tmp_path: Path, cells: Cells, reason: str
) -> None:
    result = imported("teraflock", own(tmp_path / "mine.csv", [cells, {}]))
    assert len(result.offers) == 1
    assert [(each.where, each.reason) for each in result.rejected] == [("mine.csv, line 2", reason)]


def test_a_row_without_a_mode_is_one_offer_with_an_unknown_mode(tmp_path: Path) -> None:
    assert imported("teraflock", own(tmp_path / "mine.csv", [{"mode": ""}])).one.mode is None


# --- shipped offers ------------------------------------------------------------------------------------------------


def shipped_rows() -> list[dict[str, str]]:
    with Path(SHIPPED_PATH).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_several_numbers_of_gpus_become_one_offer_each(tmp_path: Path) -> None:
    result = imported("teraflock", own(tmp_path / "x.csv", [{"gpu_count": "1|2|4|8", "price": ""}]))
    assert [offer.gpu_count for offer in result.offers] == [1, 2, 4, 8]


def test_a_row_with_very_many_combinations_is_rejected(tmp_path: Path) -> None:
    result = imported("teraflock", own(tmp_path / "x.csv", [{"gpu_count": "1|2" * 51, "gpu": "T4|L4"}]))
    assert result.offers == []
    assert [each.reason for each in result.rejected] == ["gives more than 100 offers"]


def test_all_105_shipped_rows_are_imported() -> None:
    result = imported("teraflock", Path(SHIPPED_PATH), as_of="")
    assert len(shipped_rows()) == result.rows == 105
    assert result.rejected == []
    cited = Counter(offer.cited for offer in result.offers)
    assert cited.keys() == {row["cited"] for row in shipped_rows()}
    assert len(cited) == 105
    assert [offer.cited for offer in result.offers if offer.standing == "refused"] == []


def test_every_shipped_offer_has_a_source_and_known_flags() -> None:
    for offer in imported("teraflock", Path(SHIPPED_PATH), as_of="").offers:
        assert "row 0" in offer.cited
        assert set(offer.flags) <= FLAGS.keys()
        assert offer.kind != "unstated" or offer.gpu_name.startswith("("), offer.gpu_name


SEEDS = Path(__file__).parents[4] / "shared" / "seeds" / "offers.csv"


@pytest.mark.skipif(not SEEDS.exists(), reason="the surveys of the shipped offers are not available")
def test_the_shipped_offers_equal_the_surveys() -> None:
    with SEEDS.open(encoding="utf-8", newline="") as file:
        surveyed = {row["offer_id"]: row for row in csv.DictReader(file)}
    shipped = {row["cited"].rsplit(" ", 1)[1]: row for row in shipped_rows()}
    assert shipped.keys() == surveyed.keys()
    for id, row in shipped.items():
        seed = surveyed[id]
        cores = 2 if "OCPUs" in row["note"] else 1  # an Oracle OCPU has two threads
        counts = seed["gpu_count"].split("|")
        assert _number(row["price"]) == _number(seed["price"]), id
        if len(counts) > 1:
            assert row["gpu_count"] == seed["gpu_count"], id  # one offer for each
        elif counts[0] or "inferred:count" not in row["flags"]:
            assert row["gpu_count"] == counts[0], id
        assert _number(row["ram_gb"]) == _number(seed["ram_gb"]), id
        assert _number(row["vcpus"]) == _number(seed["vcpu"], cores), id
        assert row["as_of"] == seed["as_of"], id
        if seed["price"]:
            assert (row["currency"], row["per"]) == (seed["currency"], seed["unit"]), id


def _number(text: str, times: int = 1) -> float | None:
    return times * float(text) if text else None
