"""The SkyPilot layout: known faults of real catalogs are corrected or refused. The rows are copies of real ones."""

import csv
from pathlib import Path

import pytest
from tests.unit.offer.catalogs import Cells, gpu_info, imported, machine, skypilot
from tests.unit.offer.random_offers import RATES

from teraflock.base.clock import SystemClock
from teraflock.base.errors import BrokenSource
from teraflock.base.money import MICROS
from teraflock.base.quantities import GIB
from teraflock.catalog.names import find_kinds
from teraflock.catalog.places import place_filter, places_of
from teraflock.offer import store
from teraflock.offer.imports import import_offers
from teraflock.offer.model import Mode, Offer, Query
from teraflock.offer.place.store import place_counts
from teraflock.offer.service import OfferService
from teraflock.offer.tally import Origin, Report
from teraflock.storage.database import Database
from teraflock.storage.open import open_database

REAL = Path(__file__).parents[4] / "shared" / "data" / "skypilot-catalog"


def memory_by_type(folder: Path) -> dict[str, tuple[str, int]]:
    """Return the card and its GB for each instance type."""
    return {
        offer.instance_type: (offer.gpu, (offer.gpu_memory_bytes or 0) // GIB)
        for offer in imported("skypilot", folder).offers
    }


# --- memory --------------------------------------------------------------------------------------------------------


def test_memory_of_the_whole_node_is_divided(tmp_path: Path) -> None:
    """Vast and PrimeIntellect. Two A100 with 81,920 MiB could have 80 GB each, but not if others have 163,840."""
    folder = skypilot(
        tmp_path,
        "vast",
        [
            machine("A100", 2, 81_920, InstanceType="two-of-40"),
            machine("A100", 2, 163_840, InstanceType="two-of-80"),
            machine("A100-80GB", 8, 655_360, InstanceType="eight-of-80"),
            machine("RTX5090", 1, 32_607, InstanceType="one"),
        ],
    )
    assert memory_by_type(folder) == {
        "two-of-40": ("A100-SXM4-40", 40),
        "two-of-80": ("A100-SXM4-80", 80),
        "eight-of-80": ("A100-SXM4-80", 80),
        "one": ("RTX5090", 32),
    }
    flagged = {o.instance_type for o in imported("skypilot", folder).offers if "corrected:memory" in o.flags}
    assert flagged == {"two-of-40", "two-of-80", "eight-of-80"}


def test_memory_of_one_gpu_is_unchanged(tmp_path: Path) -> None:
    folder = skypilot(
        tmp_path,
        "lambda",
        [machine("A100", 2, 81_920), machine("V100", 8, 16_384), machine("H100", 4, 81_559)],
    )
    assert set(memory_by_type(folder).values()) == {
        ("A100-SXM4-80", 80),
        ("V100-SXM2", 16),
        ("H100-SXM5", 80),
    }
    assert not any("corrected:memory" in offer.flags for offer in imported("skypilot", folder).offers)


@pytest.mark.parametrize("cloud", ["shadeform", "runpod"])
def test_gib_called_mib_are_corrected(tmp_path: Path, cloud: str) -> None:
    folder = skypilot(
        tmp_path, cloud, [machine("L4", 1, 24), machine("H100", 8, 80), machine("A100-80GB", 2, 80)]
    )
    offers = imported("skypilot", folder).offers
    assert [(offer.gpu, (offer.gpu_memory_bytes or 0) // GIB) for offer in offers] == [
        ("L4", 24),
        ("H100-SXM5", 80),
        ("A100-SXM4-80", 80),
    ]
    assert all("corrected:memory" in offer.flags for offer in offers)


def test_gib_of_the_whole_node_called_mib_are_corrected(tmp_path: Path) -> None:
    folder = skypilot(tmp_path, "shadeform", [machine("H100", 8, 640), machine("L4", 2, 48)])
    assert set(memory_by_type(folder).values()) == {("H100-SXM5", 80), ("L4", 24)}


def test_info_without_memory_is_accepted(tmp_path: Path) -> None:
    """As in Azure's `GpuInfo`."""
    folder = skypilot(
        tmp_path,
        "azure",
        [
            machine("V100", 2, 0, GpuInfo="V100"),
            machine("A100-80GB", 1, 0, GpuInfo=""),
            machine("A10", 1, 0, GpuInfo="{'Gpus': [{'Name': 'A10', 'MemoryInfo': {}}"),
        ],
    )
    assert set(memory_by_type(folder).values()) == {("V100-SXM2", 16), ("A100-SXM4-80", 80), ("A10", 24)}


@pytest.mark.parametrize(
    "info",
    [
        gpu_info("A100-80GB", 2, 81_920),
        gpu_info("A100-80GB", 2, 81_920, json=True),
        gpu_info("A100-80GB", 2, 81_920, json=True).replace(": ", ":"),
        gpu_info("A100-80GB", 2, 81_920).replace("'NVIDIA'", "null"),
        gpu_info("A100-80GB", 2, 81_920).replace("'NVIDIA'", "None"),
    ],
    ids=["python", "json", "json without spaces", "python with null", "python with None"],
)
def test_info_is_read_in_every_format(tmp_path: Path, info: str) -> None:
    folder = skypilot(tmp_path, "hyperstack", [machine("A100", 2, 0, GpuInfo=info)])
    offer = imported("skypilot", folder).one
    assert (offer.gpu, offer.gpu_memory_bytes) == ("A100-SXM4-80", 80 * GIB)
    assert offer.flags == ("inferred:variant",)


def test_the_most_specific_name_is_used(tmp_path: Path) -> None:
    info = gpu_info("A100 PCIe", 1, 81_920)
    folder = skypilot(tmp_path, "runpod", [machine("A100-80GB", 1, 0, GpuInfo=info)])
    offer = imported("skypilot", folder).one
    assert (offer.gpu, offer.flags) == ("A100-PCIe-80", ())
    typed = machine("A100", 1, 81_920, InstanceType="1x-A100_PCIE-32-65536")
    assert imported("skypilot", skypilot(tmp_path, "vast", [typed])).one.gpu == "A100-PCIe-80"


def test_a_slice_has_a_fraction_of_the_memory(tmp_path: Path) -> None:
    quarter = machine("A10", 1, 24_576, AcceleratorCount="0.25", Price="0.454")
    offer = imported("skypilot", skypilot(tmp_path, "azure", [quarter])).one
    assert (offer.gpu_count, offer.gpu_share, offer.gpu_memory_bytes) == (1, 0.25, 6 * GIB)
    assert "slice" in offer.flags


# --- prices --------------------------------------------------------------------------------------------------------


def test_a_row_without_a_count_is_rejected_and_the_others_are_imported(tmp_path: Path) -> None:
    folder = skypilot(
        tmp_path,
        "aws",
        [machine("A100", 1, 40_960, AcceleratorCount=""), machine("A100", 1, 40_960, AcceleratorCount="0"),
         machine("A100", 1, 40_960)],
    )  # fmt: skip
    result = imported("skypilot", folder)
    assert result.rows == 3
    assert len(result.offers) == 1
    assert [(each.where, each.reason) for each in result.rejected] == [
        ("aws/vms.csv, line 2", "a GPU has no count"),
        ("aws/vms.csv, line 3", "a GPU has no count"),
    ]


def test_oracle_prices_are_per_gpu(tmp_path: Path) -> None:
    rows: list[Cells] = [
        machine("V100", count, 16_384, price="2.95", InstanceType=f"GPU3.{count}") for count in (1, 2, 8)
    ]
    rows += [
        machine("A10", count, 24_576, price=str(2 * count), InstanceType=f"A10.{count}") for count in (1, 4)
    ]
    by_type = {o.instance_type: o for o in imported("skypilot", skypilot(tmp_path, "oci", rows)).offers}
    monthly = {name: (offer.price_micros_per_month or 0) // 730 for name, offer in by_type.items()}
    assert monthly == {
        "GPU3.1": 2_950_000,
        "GPU3.2": 5_900_000,
        "GPU3.8": 23_600_000,
        "A10.1": 2_000_000,
        "A10.4": 8_000_000,
    }
    assert {name for name, offer in by_type.items() if offer.basis == "gpu"} == {"GPU3.1", "GPU3.2", "GPU3.8"}
    assert all(
        offer.quoted and offer.quoted.micros == 2_950_000 for n, offer in by_type.items() if "GPU3" in n
    )


def test_equal_prices_of_other_clouds_are_not_multiplied(tmp_path: Path) -> None:
    rows = [machine("V100", count, 16_384, price="2.95") for count in (1, 2)]
    offers = imported("skypilot", skypilot(tmp_path, "ibm", rows)).offers
    assert {offer.price_micros_per_month for offer in offers} == {2_950_000 * 730}


def test_a_spot_price_of_zero_is_refused(tmp_path: Path) -> None:
    """As all spot prices of Vast."""
    result = imported(
        "skypilot", skypilot(tmp_path, "vast", [machine("RTX5090", 1, 32_607, SpotPrice="0.00")])
    )
    (spot,), (on_demand,) = result.in_mode("spot"), result.in_mode("on-demand")
    assert (spot.standing, spot.note) == ("refused", "the price is zero")
    assert on_demand.standing == "priced"


def test_a_spot_price_equal_to_on_demand_is_flagged(tmp_path: Path) -> None:
    """As all spot prices of RunPod."""
    row = machine("A100-80GB", 1, 80, price="1.39", SpotPrice="1.39")
    (spot,) = imported("skypilot", skypilot(tmp_path, "runpod", [row])).in_mode("spot")
    assert spot.standing == "priced"
    assert "spot-not-cheaper" in spot.flags


def test_a_spot_price_above_on_demand_is_refused(tmp_path: Path) -> None:
    row = machine("A100-80GB", 1, 81_920, price="1.39", SpotPrice="1.40")
    (spot,) = imported("skypilot", skypilot(tmp_path, "aws", [row])).in_mode("spot")
    assert (spot.standing, spot.note) == ("refused", "the spot price is above the on-demand price")


def test_one_cent_per_gpu_is_refused(tmp_path: Path) -> None:
    """Mithril's A100."""
    rows = [
        machine("A100", 8, 81_920, price="0.08", SpotPrice="0.08"),
        machine("H100", 8, 81_920, price="8.0"),
    ]
    offers = imported("skypilot", skypilot(tmp_path, "mithril", rows)).offers
    assert [(offer.gpu, offer.mode, offer.standing) for offer in offers] == [
        ("A100-SXM4-80", "on-demand", "refused"),
        ("A100-SXM4-80", "spot", "refused"),
        ("H100-SXM5", "on-demand", "priced"),
    ]
    assert "0.0100 USD per GPU-hour" in offers[0].note


def test_a_row_without_a_price_has_an_unknown_price(tmp_path: Path) -> None:
    offer = imported("skypilot", skypilot(tmp_path, "aws", [machine("A100", 8, 40_960, price="")])).one
    assert (offer.standing, offer.mode) == ("unknown", "on-demand")


def test_a_row_with_only_a_spot_price_is_a_spot_offer(tmp_path: Path) -> None:
    offer = imported(
        "skypilot", skypilot(tmp_path, "aws", [machine("T4", 1, 16_384, price="", SpotPrice="0.2")])
    ).one
    assert (offer.standing, offer.mode) == ("priced", "spot")


@pytest.mark.parametrize("column", ["Price", "SpotPrice", "vCPUs", "MemoryGiB", "AcceleratorCount"])
@pytest.mark.parametrize("text", ["a lot", "nan", "inf", "1e999", "0x10", "1_000_", "9" * 5000])
def test_an_invalid_number_rejects_only_its_row(tmp_path: Path, column: str, text: str) -> None:
    rows = [{**machine("T4", 1, 16_384), column: text}, machine("T4", 1, 16_384, InstanceType="whole")]
    result = imported("skypilot", skypilot(tmp_path, "aws", rows))
    assert [offer.instance_type for offer in result.offers] == ["whole"]
    assert [(each.where, each.reason) for each in result.rejected] == [
        ("aws/vms.csv, line 2", "a price or another figure is not a number")
    ]


def test_machines_without_a_gpu_keep_only_their_on_demand_price(tmp_path: Path) -> None:
    plain = {"InstanceType": "m5.large", "Price": "0.096", "SpotPrice": "0.04"}
    result = imported("skypilot", skypilot(tmp_path, "aws", [plain]))
    (offer,) = result.offers
    assert (offer.kind, offer.gpu_count, offer.mode, offer.standing) == ("none", 0, "on-demand", "priced")
    assert [each.reason for each in result.rejected] == [
        "spot prices of machines without a GPU are not imported"
    ]


# --- Google --------------------------------------------------------------------------------------------------------


def host(name: str, zone: str, price: str, spot: str = "") -> Cells:
    return {"InstanceType": name, "vCPUs": 12, "MemoryGiB": 85, "Price": price, "SpotPrice": spot,
            "AvailabilityZone": zone}  # fmt: skip


def google_gpu(name: str, count: int, zone: str, price: str, spot: str = "") -> Cells:
    return {"AcceleratorName": name, "AcceleratorCount": count, "vCPUs": "", "MemoryGiB": "", "Price": price,
            "SpotPrice": spot, "AvailabilityZone": zone}  # fmt: skip


def test_google_host_and_gpu_are_one_offer(tmp_path: Path) -> None:
    folder = skypilot(
        tmp_path,
        "gcp",
        [
            host("a2-highgpu-1g", "us-central1-a", "0.74", "0.22"),
            host("n1-standard-16", "us-central1-a", "0.76", "0.16"),
            google_gpu("A100", 1, "us-central1-a", "2.93", "0.88"),
            google_gpu("T4", 2, "us-central1-a", "0.7", "0.22"),
        ],
    )
    result = imported("skypilot", folder)
    found = {
        (o.instance_type, o.gpu, o.gpu_count, o.mode): (o.price_micros_per_month or 0) // 730
        for o in result.offers
    }
    assert found == {
        ("a2-highgpu-1g", "A100-SXM4-40", 1, "on-demand"): 3_670_000,
        ("a2-highgpu-1g", "A100-SXM4-40", 1, "spot"): 1_100_000,
        ("n1-standard-16", "", 0, "on-demand"): 760_000,
        ("n1-standard-16", "T4", 2, "on-demand"): 1_460_000,
        ("n1-standard-16", "T4", 2, "spot"): 380_000,
    }
    with_gpu = [offer for offer in result.offers if offer.gpu]
    assert all("host-added" in offer.flags and offer.vcpus == 12 for offer in with_gpu)


def test_a_google_gpu_without_a_host_in_its_zone_is_refused(tmp_path: Path) -> None:
    folder = skypilot(
        tmp_path,
        "gcp",
        [host("a2-highgpu-1g", "us-central1-a", "0.74"), google_gpu("A100", 1, "us-central1-b", "2.93")],
    )
    offer = imported("skypilot", folder).one
    assert offer.standing == "refused"
    assert "gpu-only" in offer.flags
    assert "for the GPU only" in offer.note


def test_google_spot_needs_both_spot_prices(tmp_path: Path) -> None:
    folder = skypilot(
        tmp_path,
        "gcp",
        [host("a2-highgpu-1g", "z", "0.74"), google_gpu("A100", 1, "z", "2.93", "0.88")],
    )
    assert imported("skypilot", folder).one.mode == "on-demand"


@pytest.mark.parametrize(
    ("name", "kind", "chips"),
    [("tpu-v2-8", "TPU-v2", 4), ("tpu-v5p-1024", "TPU-v5p", 512), ("tpu-v6e-16", "TPU-v6e", 16)],
)
def test_tpus_are_counted_by_their_names(tmp_path: Path, name: str, kind: str, chips: int) -> None:
    row = google_gpu(name, 1, "us-central2-b", str(2 * chips))
    offer = imported("skypilot", skypilot(tmp_path, "gcp", [row])).one
    assert (offer.kind, offer.gpu, offer.gpu_count, offer.instance_type) == ("other", kind, chips, name)
    assert offer.standing == "priced"


# --- paths ---------------------------------------------------------------------------------------------------------


def test_the_path_is_a_catalog_a_cloud_or_a_file(tmp_path: Path) -> None:
    skypilot(tmp_path, "aws", [machine("T4", 1, 16_384)])
    skypilot(tmp_path, "lambda", [machine("A10", 1, 24_576)])
    for path, clouds in (
        (tmp_path, ["aws", "lambda"]),
        (tmp_path / "aws", ["aws"]),
        (tmp_path / "lambda" / "vms.csv", ["lambda"]),
    ):
        assert [offer.provider for offer in imported("skypilot", path).offers] == clouds


def test_a_leading_comma_of_a_region_is_removed(tmp_path: Path) -> None:
    offer = imported(
        "skypilot", skypilot(tmp_path, "vast", [machine("T4", 1, 16_384, Region=", CA, NA")])
    ).one
    assert offer.region == "CA, NA"


def test_a_folder_that_is_not_a_catalog_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(BrokenSource, match="is not a SkyPilot catalog") as caught:
        imported("skypilot", tmp_path)
    assert "vms.csv" in caught.value.hint
    with pytest.raises(BrokenSource, match="does not exist"):
        imported("skypilot", tmp_path / "nowhere")


# --- the real catalog ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def real() -> tuple[Report, Database]:
    if not REAL.is_dir():
        pytest.skip("the real catalog is not available")
    database = open_database(":memory:", SystemClock())
    origin = Origin(source="skypilot", layout="skypilot", path=REAL, day_of=lambda file: "2026-08-22")
    return import_offers(database, RATES, SystemClock(), origin), database


def test_the_real_catalog_is_read_completely(real: tuple[Report, Database]) -> None:
    report, _ = real
    rows = 0
    for file in REAL.glob("*/vms.csv"):
        with file.open(encoding="utf-8", newline="") as lines:
            rows += sum(1 for _ in csv.reader(lines)) - 1
    assert report.rows_read == rows >= 112_206
    assert report.offers_taken > 100_000


def test_the_real_catalog_has_no_unknown_gpus(real: tuple[Report, Database]) -> None:
    assert real[0].unknown_gpus == ()


def test_the_known_faults_of_the_real_catalog_are_found(real: tuple[Report, Database]) -> None:
    report, database = real
    assert {"the price is zero", "the price is implausibly low"} <= {
        reason.reason for reason in report.refused
    }
    with database.read() as tx:
        offers = [offer for offer in store.every(tx) if offer.kind == "gpu"]
    assert len(offers) > 10_000
    vast_spot = [offer for offer in offers if (offer.provider, offer.mode) == ("vast", "spot")]
    assert vast_spot
    assert {offer.standing for offer in vast_spot} == {"refused"}
    mithril = [o for o in offers if o.provider == "mithril" and o.gpu.startswith("A100")]
    assert mithril
    assert {offer.standing for offer in mithril} == {"refused"}
    assert all("spot-not-cheaper" in o.flags for o in offers if (o.provider, o.mode) == ("runpod", "spot"))
    for offer in offers:
        assert "suspect:memory" not in offer.flags, offer
        assert offer.gpu_count
        assert 1 * GIB <= (offer.gpu_memory_bytes or 0) <= 288 * GIB
        if offer.standing == "priced":
            assert (
                offer.price_micros_per_month or 0
            ) >= offer.gpu_count * offer.gpu_share * 730 * 0.015 * MICROS


def test_every_region_of_the_real_catalog_has_a_country_but_these(real: tuple[Report, Database]) -> None:
    with real[1].read() as tx:
        counts = place_counts(tx)
    unplaced = {
        (each.provider, each.region)
        for each in counts
        if not all(place.country for place in places_of(each.provider, each.region, each.zone))
    }
    assert unplaced == {
        ("hyperbolic", "default"), ("lambda", "europe-south-1"), ("seeweb", ""), ("yotta", "ap-east-2"),
    }  # fmt: skip


def test_the_cheapest_of_the_real_catalog_in_europe_and_the_us(real: tuple[Report, Database]) -> None:
    service = OfferService(real[1], RATES, SystemClock())

    def cheapest(region: str, gpu: str, mode: Mode) -> Offer:
        query = Query(
            gpus=find_kinds(gpu), modes=(mode,), places=place_filter((region,), (), ()), sort="price-per-gpu"
        )
        return service.search(query, limit=1).offers[0]

    spot = cheapest("europe", "A100-80", "spot")
    assert (spot.provider, spot.region) == ("primeintellect", "FI")
    here = cheapest("US", "H100", "on-demand")
    assert [place.country for place in places_of(here.provider, here.region, here.zone)] == ["US"]


def test_variants_of_the_real_catalog_come_from_the_types(real: tuple[Report, Database]) -> None:
    report, database = real
    with database.read() as tx:
        offers = [offer for offer in store.every(tx) if offer.kind == "gpu"]
    cards = {(offer.provider, offer.instance_type): offer for offer in offers}
    assert cards["lambda", "gpu_1x_h100_pcie"].gpu == "H100-PCIe"
    assert cards["azure", "Standard_NC24ads_A100_v4"].gpu == "A100-PCIe-80"
    assert cards["azure", "Standard_NC40ads_H100_v5"].gpu == "H100-NVL"
    assert cards["azure", "Standard_NV4as_v4"].gpu_share == 0.125
    assert report.far_prices == 0, "real prices are not flagged"


def test_an_error_says_which_of_the_many_files_is_broken(tmp_path: Path) -> None:
    skypilot(tmp_path, "aws", [machine("T4", 1, 0)])
    skypilot(tmp_path, "gcp", [machine("T4", 1, 0)])
    broken = tmp_path / "gcp" / "vms.csv"
    broken.write_text(broken.read_text().rstrip() + "\ncut,off")
    with pytest.raises(BrokenSource, match="`gcp/vms.csv`, line 3"):
        imported("skypilot", tmp_path)
