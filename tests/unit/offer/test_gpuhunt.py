"""gpuhunt's layout: a CSV file per provider, with a row per instance type, place and purchase mode."""

from pathlib import Path

import pytest
from tests.unit.offer.catalogs import Cells, gpuhunt, imported

from teraflock.base.errors import BrokenSource
from teraflock.base.money import Price
from teraflock.base.quantities import GIB


def gpus(name: str, count: int, memory_each: str, price: str, **more: object) -> Cells:
    return {"gpu_name": name, "gpu_count": count, "gpu_memory": memory_each, "price": price, **more}


def test_a_row_is_an_offer(tmp_path: Path) -> None:
    row = gpus("A100", 8, "40.0", "32.7726", instance_name="p4d.24xlarge", location="us-east-1", cpu="96",
               memory="1152.0", disk_size="8000.0")  # fmt: skip
    offer = imported("gpuhunt", gpuhunt(tmp_path / "aws.csv", [row])).one
    assert (offer.provider, offer.region, offer.instance_type) == ("aws", "us-east-1", "p4d.24xlarge")
    assert (offer.gpu, offer.gpu_count, offer.gpu_memory_bytes) == ("A100-SXM4-40", 8, 40 * GIB)
    assert (offer.vcpus, offer.ram_bytes, offer.disk_gb) == (96, 1152 * GIB, 8000)
    assert offer.quoted == Price(32_772_600, "USD", "hour")
    assert offer.mode == "on-demand"


def test_the_provider_is_the_name_of_the_file(tmp_path: Path) -> None:
    gpuhunt(tmp_path / "lambdalabs.csv", [gpus("A10", 1, "24", "0.75")])
    gpuhunt(tmp_path / "some-cloud.csv", [gpus("A10", 1, "24", "0.8")])
    assert [offer.provider for offer in imported("gpuhunt", tmp_path).offers] == ["lambda", "some-cloud"]


def test_spot_is_compared_with_on_demand(tmp_path: Path) -> None:
    rows = [
        gpus("T4", 1, "16", "0.60", spot="True", instance_name="dear"),
        gpus("T4", 1, "16", "0.50", instance_name="dear"),
        gpus("T4", 1, "16", "0.50", spot="True", instance_name="same"),
        gpus("T4", 1, "16", "0.50", instance_name="same"),
        gpus("T4", 1, "16", "0.20", spot="True", instance_name="cheap"),
        gpus("T4", 1, "16", "0.50", instance_name="cheap"),
    ]
    spot = {
        o.instance_type: o for o in imported("gpuhunt", gpuhunt(tmp_path / "gcp.csv", rows)).in_mode("spot")
    }
    assert {name: offer.standing for name, offer in spot.items()} == {
        "dear": "refused",
        "same": "priced",
        "cheap": "priced",
    }
    assert "spot-not-cheaper" in spot["same"].flags
    assert "spot-not-cheaper" not in spot["cheap"].flags


def test_googles_tpus_are_found_without_their_prefix(tmp_path: Path) -> None:
    row = gpus("v5p-8", 1, "0", "16.8", gpu_vendor="google")
    offer = imported("gpuhunt", gpuhunt(tmp_path / "gcp.csv", [row])).one
    assert (offer.kind, offer.gpu, offer.gpu_count) == ("other", "TPU-v5p", 4)


def test_memory_of_the_node_is_suspect(tmp_path: Path) -> None:
    offer = imported("gpuhunt", gpuhunt(tmp_path / "vastai.csv", [gpus("T4", 4, "64", "1.2")])).one
    assert (offer.provider, offer.gpu_memory_bytes) == ("vast", 16 * GIB)
    assert "suspect:memory" in offer.flags


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (gpus("T4", 0, "16", "0.5"), "a GPU has no count"),
        (gpus("T4", 1, "16", "0.5", spot="maybe"), "`spot` is neither `True` nor `False`"),
        (gpus("T4", 1, "16", "free"), "a price or another figure is not a number"),
        (gpus("T4", 1, "16", "-0.5"), "the price is negative"),
        (gpus("T4", 1, "16", "0.5", memory="-1"), "RAM or vCPUs are out of range"),
    ],
)
def test_an_invalid_row_is_rejected_with_a_reason(tmp_path: Path, row: Cells, reason: str) -> None:
    result = imported("gpuhunt", gpuhunt(tmp_path / "aws.csv", [row, gpus("T4", 1, "16", "0.5")]))
    assert len(result.offers) == 1
    assert [(each.where, each.reason) for each in result.rejected] == [("aws.csv, line 2", reason)]


@pytest.mark.parametrize("price", ["0", "0.0", "0.01"])
def test_placeholders_are_refused(tmp_path: Path, price: str) -> None:
    offer = imported("gpuhunt", gpuhunt(tmp_path / "aws.csv", [gpus("A100", 1, "80", price)])).one
    assert offer.standing == "refused"


def test_a_machine_without_a_gpu_is_kept(tmp_path: Path) -> None:
    offer = imported("gpuhunt", gpuhunt(tmp_path / "aws.csv", [{"price": "0.096"}])).one
    assert (offer.kind, offer.gpu_count) == ("none", 0)


def test_a_folder_without_csv_files_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(BrokenSource, match="contains no CSV files"):
        imported("gpuhunt", tmp_path)
    with pytest.raises(BrokenSource, match="does not exist"):
        imported("gpuhunt", tmp_path / "nowhere.csv")
