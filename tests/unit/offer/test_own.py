"""Teraflock's own layout, in which the shipped offers lie too."""

import csv
from collections import Counter
from pathlib import Path

import pytest
from tests.unit.offer.catalogs import Cells, own, taken

from teraflock.base.money import Price
from teraflock.base.quantities import GIB
from teraflock.offer.importers.own import NEEDED, OPTIONAL
from teraflock.offer.imports import SHIPPED_PATH
from teraflock.offer.model import FLAGS


def test_every_column_has_its_place(tmp_path: Path) -> None:
    row = {
        "provider": "Tencent Cloud", "region": "Guangzhou|Beijing", "zone": "z1", "instance_type": "GN10Xp",
        "gpu": "Tesla V100 32GB", "gpu_count": "8", "gpu_memory_gb": "32", "vcpus": "80", "cpu": "Xeon",
        "ram_gb": "320", "disk_gb": "500", "network_gbps": "25", "mode": "reserved", "term_months": "12",
        "price": "5856.5", "currency": "CNY", "per": "month", "basis": "gpu", "as_of": "2019-01", "cited": "row 1",
        "flags": "inferred:name suspect:ram", "note": "a note",
    }  # fmt: skip
    assert set(row) == {*NEEDED, *OPTIONAL}
    offer = taken("teraflock", own(tmp_path / "mine.csv", [row])).one
    assert (offer.provider, offer.region, offer.zone) == ("tencent", "Guangzhou|Beijing", "z1")
    assert (offer.gpu, offer.gpu_name, offer.gpu_count) == ("V100-SXM2-32", "Tesla V100 32GB", 8)
    assert (offer.vcpus, offer.cpu, offer.ram_bytes) == (80, "Xeon", 320 * GIB)
    assert (offer.disk_gb, offer.network_gbps) == (500, 25)
    assert (offer.mode, offer.term_months) == ("reserved", 12)
    assert (offer.quoted, offer.basis) == (Price(5_856_500_000, "CNY", "month"), "gpu")
    assert offer.price_micros_per_month == 8 * 5_856_500_000
    assert (offer.since, offer.as_of, offer.cited, offer.note) == ("2019-01", "2019-01", "row 1", "a note")
    assert offer.flags == ("inferred:name", "suspect:ram", "inferred:variant", "price-per-gpu")


def test_only_the_needed_columns_are_needed(tmp_path: Path) -> None:
    file = tmp_path / "mine.csv"
    file.write_text(",".join(NEEDED) + "\naws,T4,1,on-demand,0.526,USD,hour\n")
    offer = taken("teraflock", file).one
    assert (offer.gpu, offer.as_of, offer.basis) == ("T4", "2026-08-22", "instance")


def test_several_cards_and_modes_are_an_offer_each(tmp_path: Path) -> None:
    row = {"gpu": "T4 | V100", "mode": "on-demand|spot", "price": "", "gpu_count": ""}
    result = taken("teraflock", own(tmp_path / "mine.csv", [row]))
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
        ({"provider": " "}, "no provider is named"),
        ({"mode": "sometimes"}, "`sometimes` is no purchase mode"),
        ({"per": "day"}, "`day` is no period"),
        ({"per": ""}, "`` is no period"),
        ({"basis": "rack"}, "`rack` is no basis of a price"),
        ({"flags": "suspect:memory odd"}, "`odd` is no flag"),
        ({"as_of": "yesterday"}, "`yesterday` is no date"),
        ({"as_of": "2019-1"}, "`2019-1` is no date"),
        ({"as_of": "2019-13"}, "`2019-13` is no date"),
        ({"as_of": "2019-02-30"}, "`2019-02-30` is no date"),
        ({"as_of": "0000"}, "`0000` is no date"),
        ({"price": "1,5"}, "a price or a figure is not a number"),
        ({"price": "1_5"}, "a price or a figure is not a number"),
        ({"gpu_count": "two"}, "a price or a figure is not a number"),
        ({"gpu_count": ""}, "a GPU is priced without saying how many"),
        ({"currency": "XXX"}, "no exchange rate is known for XXX"),
        ({"price": "-1"}, "the price is negative"),
        ({"price": "9" * 40}, "the price is beyond any price"),
    ],
)
def test_a_row_that_is_no_offer_is_told_and_the_rest_taken(tmp_path: Path, cells: Cells, reason: str) -> None:
    result = taken("teraflock", own(tmp_path / "mine.csv", [cells, {}]))
    assert len(result.offers) == 1
    assert [(each.where, each.reason) for each in result.rejected] == [("mine.csv, line 2", reason)]


def test_a_row_without_a_mode_is_one_offer_of_an_unknown_mode(tmp_path: Path) -> None:
    assert taken("teraflock", own(tmp_path / "mine.csv", [{"mode": ""}])).one.mode is None


# --- what ships ----------------------------------------------------------------------------------------------------


def shipped_rows() -> list[dict[str, str]]:
    with Path(SHIPPED_PATH).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_105_rows_ship_and_every_one_is_taken() -> None:
    result = taken("teraflock", Path(SHIPPED_PATH), as_of="")
    assert len(shipped_rows()) == result.rows == 105
    assert result.rejected == []
    cited = Counter(offer.cited for offer in result.offers)
    assert cited.keys() == {row["cited"] for row in shipped_rows()}
    assert len(cited) == 105
    assert [offer.cited for offer in result.offers if offer.standing == "refused"] == []


def test_every_shipped_offer_says_where_it_is_from_and_is_flagged_in_known_words() -> None:
    for offer in taken("teraflock", Path(SHIPPED_PATH), as_of="").offers:
        assert "row 0" in offer.cited
        assert set(offer.flags) <= FLAGS.keys()
        assert offer.kind != "unstated" or offer.gpu_name.startswith("("), offer.gpu_name


SEEDS = Path(__file__).parents[4] / "shared" / "seeds" / "offers.csv"


@pytest.mark.skipif(
    not SEEDS.exists(), reason="the surveys the shipped offers come from are not on this machine"
)
def test_the_shipped_offers_are_those_of_the_surveys_one_by_one() -> None:
    with SEEDS.open(encoding="utf-8", newline="") as file:
        surveyed = {row["offer_id"]: row for row in csv.DictReader(file)}
    shipped = {row["cited"].rsplit(" ", 1)[1]: row for row in shipped_rows()}
    assert shipped.keys() == surveyed.keys()
    for id, row in shipped.items():
        seed = surveyed[id]
        cores = 2 if "OCPUs" in row["note"] else 1  # Oracle counts cores of two threads
        counts = seed["gpu_count"].split("|")
        assert _number(row["price"]) == _number(seed["price"]), id
        if len(counts) > 1:
            assert row["gpu_count"] == "", id  # offered with one, two or four cards
        elif counts[0] or "inferred:count" not in row["flags"]:
            assert row["gpu_count"] == counts[0], id
        assert _number(row["ram_gb"]) == _number(seed["ram_gb"]), id
        assert _number(row["vcpus"]) == _number(seed["vcpu"], cores), id
        assert row["as_of"] == seed["as_of"], id
        if seed["price"]:
            assert (row["currency"], row["per"]) == (seed["currency"], seed["unit"]), id


def _number(text: str, times: int = 1) -> float | None:
    return times * float(text) if text else None
