"""The questions that users ask of the planner, one test each, on a small catalog that ships with the tests.

Questions about scripts are in tests/corpus. The questions that need a full catalog also run on the public SkyPilot
catalog where it lies beside the repository.
"""

import os
import shutil
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from tests.story.tera import Tera
from tests.unit.offer.catalogs import Cells, own

REAL = Path(
    os.environ.get("TERA_TEST_CATALOG", Path(__file__).parents[3] / "shared" / "data" / "skypilot-catalog")
)


def row(
    provider: str, kind: str, gpu: str, count: int, price: str, mode: str = "on-demand", **more: object
) -> Cells:
    return {"provider": provider, "instance_type": kind, "gpu": gpu, "gpu_count": count, "price": price, "mode": mode,
            "as_of": "2026-10-01", **more}  # fmt: skip


CATALOG = [
    row(
        "aws", "p5.48xlarge", "H100", 8, "55.04", region="us-east-1", vcpus=192, ram_gb=2048, gpu_memory_gb=80
    ),
    row(
        "aws",
        "p5.48xlarge",
        "H100",
        8,
        "68.80",
        region="eu-north-1",
        vcpus=192,
        ram_gb=2048,
        gpu_memory_gb=80,
    ),
    row(
        "aws",
        "p5.48xlarge",
        "H100",
        8,
        "22.10",
        "spot",
        region="us-east-1",
        vcpus=192,
        ram_gb=2048,
        gpu_memory_gb=80,
    ),
    row(
        "aws",
        "p4de.24xlarge",
        "A100-80GB",
        8,
        "40.97",
        region="us-east-1",
        vcpus=96,
        ram_gb=1152,
        gpu_memory_gb=80,
    ),
    row("lambda", "gpu_1x_h100_sxm5", "H100 SXM5", 1, "3.29", region="us-west-1", vcpus=26, ram_gb=225),
    row(
        "lambda", "gpu_1x_h100_sxm5", "H100 SXM5", 1, "3.19", region="australia-east-1", vcpus=26, ram_gb=225
    ),
    row("lambda", "gpu_8x_a100", "A100 SXM4 40GB", 8, "10.32", region="us-west-1", vcpus=124, ram_gb=1800),
    row("verda", "1A100.22V", "A100 SXM4 80GB", 1, "0.895", "spot", region="FIN-01", vcpus=22, ram_gb=120),
    row("verda", "1A100.22V", "A100 SXM4 80GB", 1, "1.79", region="FIN-01", vcpus=22, ram_gb=120),
    row(
        "gcp",
        "a2-ultragpu-1g",
        "A100 SXM4 80GB",
        1,
        "2.868",
        "spot",
        region="europe-west4",
        vcpus=12,
        ram_gb=170,
    ),
    row("gcp", "a2-ultragpu-1g", "A100 SXM4 80GB", 1, "5.069", region="us-central1", vcpus=12, ram_gb=170),
    row(
        "azure", "NC24ads_A100_v4", "A100 PCIe 80GB", 1, "0.60", "spot", region="eastus", vcpus=24, ram_gb=220
    ),
    row("vast", "4x-RTX4090", "RTX 4090", 4, "1.40", region="Sweden, SE, EU", vcpus=64, ram_gb=256),
    row("vast", "8x-RTX3090", "RTX 3090", 8, "1.44", region="Sichuan, CN, AS", vcpus=96, ram_gb=256),
    row("aws", "g4dn.xlarge", "T4", 1, "0.526", region="us-east-1", vcpus=4, ram_gb=16),
    row("aws", "g4dn.4xlarge", "T4", 1, "1.204", region="us-east-1", vcpus=16, ram_gb=64),
    row("aws", "g6.xlarge", "L4", 1, "0.805", region="us-east-1", vcpus=4, ram_gb=16),
    row("aws", "g6.xlarge", "L4", 1, "0.350", "spot", region="us-east-2", vcpus=4, ram_gb=16),
    row("runpod", "1x_A5000", "RTX A5000", 1, "0.27", region="SE", vcpus=9, ram_gb=25),
    row("runpod", "1x_MI300X", "MI300X", 1, "2.39", region="CA", vcpus=24, ram_gb=283),
    row("gcp", "tpu-v5e-8", "tpu-v5e", 8, "9.60", region="us-west4"),
    row("azure", "NC6s_v3", "V100 16GB", 1, "3.06", region="westus2", vcpus=6, ram_gb=112),
    row("azure", "ND40rs_v2", "V100 32GB", 8, "22.03", region="westus2", vcpus=40, ram_gb=672),
]


@pytest.fixture(scope="module")
def stocked_home(tmp_path_factory: pytest.TempPathFactory, used_home: Path) -> Path:
    folder = tmp_path_factory.mktemp("stocked")
    shutil.copytree(used_home, folder / "home")
    Tera(folder / "home").ok("offers", "import", "current", own(folder / "prices.csv", CATALOG))
    return folder / "home"


@pytest.fixture(scope="module")
def real_home(tmp_path_factory: pytest.TempPathFactory, used_home: Path) -> Path:
    if not REAL.exists():
        pytest.skip("the public catalog is not beside the repository; set TERA_TEST_CATALOG to its folder")
    folder = tmp_path_factory.mktemp("real")
    shutil.copytree(used_home, folder / "home")
    Tera(folder / "home").ok("offers", "import", "skypilot", REAL, "--as-of", "2026-08-22")
    return folder / "home"


@pytest.fixture(params=["small", "real"])
def tera(request: pytest.FixtureRequest) -> Tera:
    """A user with current prices: of the small catalog, and of the public one where it is there."""
    return Tera(request.getfixturevalue("stocked_home" if request.param == "small" else "real_home"))


@pytest.fixture
def stocked(stocked_home: Path) -> Tera:
    return Tera(stocked_home)


def plan(tera: Tera, *words: str) -> dict[str, Any]:
    made: dict[str, Any] = tera.ok("plan", *words, "--json").json
    return made


V100 = "V100-SXM2"
IMAGENET = ["resnet50", "--batch", "128", "--precision", "amp-fp16", "--epochs", "90", "--samples", "1.28M"]


# --- the users' documents --------------------------------------------------------------------------------------------


def test_which_48_gb_by_the_month_in_yuan_costs_least_per_tflops(tera: Tera) -> None:
    words = ["--memory-total-min", "48", "--mode", "monthly", "--per", "month", "--currency", "CNY"]
    cards = ["--gpu", "M40", "--gpu", "P40", "--gpu", "K40"]
    offers = tera.offers(*cards, *words, "--sort", "price-per-tflops", "--source", "shipped")
    assert [(o["provider"], o["gpu"], o["price_micros"] / 1e6) for o in offers][:2] == [
        ("baidu", "P40", 8094.0),
        ("tencent", "P40", 9000.0),
    ]
    table = tera.ok("offers", *cards, *words, "--sort", "price-per-tflops", columns=160).out.splitlines()
    assert "CNY/TFLOPS-month" in table[0]
    assert f"{8094 / 23.6:.2f}" in table[1]


def test_vgg_with_256_samples_fits_on_24_gb_but_not_on_16(tera: Tera) -> None:
    cards = tera.ok("estimate", "vgg16", "--batch", "256", "--gpu", "P40", "--gpu", "V100", "--json").json[
        "gpus"
    ]
    assert {each["gpu"]: each["fits"] for each in cards} == {
        "P40": True, "V100-SXM2": False, "V100-SXM2-32": True, "V100-PCIe": False, "V100-PCIe-32": True,
    }  # fmt: skip


def test_ten_platforms_are_compared_with_one_row_each(tera: Tera) -> None:
    rows = tera.ok("compare", "--by", "provider", "--json").json
    by_name = {each["provider"]: each for each in rows}
    assert len(by_name) == len(rows)
    ten = ("tencent", "genesis", "lambda", "ibm", "oci", "azure", "vast", "gcp", "aws", "paperspace")
    assert set(ten) <= set(by_name)
    assert by_name["colab"]["modes"]["free"]["price_per_gpu_micros"] == 0
    assert all(isinstance(each["regions"], int) for each in rows)


def test_hourly_and_monthly_prices_are_comparable_per_gpu(tera: Tera) -> None:
    offers = tera.offers("--gpu", "V100", "--provider", "ibm", "--provider", "oci", "--source", "shipped")
    prices = {(o["provider"], o["mode"], o["gpu_count"]): o["price_per_gpu_micros"] for o in offers}
    assert prices["oci", "on-demand", 8] == prices["oci", "on-demand", 1] == 2_950_000
    assert prices["ibm", "monthly", 1] == pytest.approx(2233 / 730 * 1e6, abs=1)


def test_an_own_server_is_compared_with_one_provider(tera: Tera) -> None:
    words = [
        *("plan", "buy-or-rent", "--gpu", "V100", "--count", "2", "--purchase", "16000", "--years", "3"),
        *("--watts", "900", "--power", "0.15", "--hosting", "80", "--staff", "200", "--json"),
    ]
    anywhere, azure = tera.ok(*words).json, tera.ok(*words, "--provider", "azure").json
    assert azure["break_even"]
    assert {each["rent"]["provider"] for each in azure["break_even"]} == {"azure"}
    assert (
        anywhere["break_even"][0]["rent"]["micros_per_month"]
        <= azure["break_even"][0]["rent"]["micros_per_month"]
    )
    for each in (*anywhere["break_even"], *azure["break_even"]):
        rent = each["rent"]
        assert rent["machines"] * rent["gpu_count"] >= 2, "machines are rented whole"
        assert rent["machines"] == 1 or rent["provider"] not in ("vast", "primeintellect", "shadeform")
    nowhere = tera.run(*words[:-1], "--region", "atlantis")
    assert nowhere.code == 0
    assert "No offer with a price matches" in nowhere.err


def test_five_hours_a_month_at_paperspace_include_the_disk(tera: Tera) -> None:
    words = ["--hours-per-month", "5", "--disk", "50", "--source", "shipped", "--gpu", "P4000"]
    choice = plan(tera, *words)["choices"][0]
    assert choice["cost"]["expected_micros"] == 7_550_000
    assert {part["what"]: part["micros"] for part in choice["parts"]} == {
        "rent": 2_550_000,
        "disk": 5_000_000,
    }


def test_light_use_comes_out_as_in_the_document_if_disks_count_as_there(tera: Tera) -> None:
    """The document pays for a disk at Paperspace only."""
    words = [
        "--disk",
        "50",
        "--source",
        "shipped",
        "--disk-price",
        "gcp=0",
        "--disk-price",
        "aws=0",
        "--top",
        "100",
    ]
    for hours, expected in (
        (5, {("gcp", "T4"): 1.75, ("gcp", V100): 4.0, ("aws", V100): 6.0, ("paperspace", "P4000"): 7.55}),
        (10, {("gcp", "T4"): 3.5, ("gcp", V100): 8.0, ("aws", V100): 12.0, ("paperspace", "P4000"): 10.1}),
    ):  # fmt: skip
        made = plan(tera, "--hours-per-month", str(hours), *words)
        costs: dict[tuple[str, str], int] = {}
        for each in made["choices"]:
            costs.setdefault(
                (each["offer"]["provider"], each["offer"]["gpu"]), each["cost"]["expected_micros"]
            )
        assert {key: costs[key] / 1e6 for key in expected} == expected
    assert made["assumptions"]["disk_prices"] == {"gcp": 0, "aws": 0}
    counted = plan(tera, "--hours-per-month", "5", *words[:4], "--gpu", "T4")["choices"][0]
    assert counted["cost"]["expected_micros"] == 6_750_000
    refused = tera.run("plan", "--hours", "5", "--disk", "50", "--disk-price", "gpc=0")
    assert (refused.code, "`gcp`" in refused.hint) == (2, True)


def test_the_way_for_light_use_leads_from_free_to_paid(tera: Tera) -> None:
    found = tera.ok("recommend", "learning", "--json").json
    assert [step["step"] for step in found["steps"]] == [
        "your own machine", "free notebook", "preemptible", "on-demand",
    ]  # fmt: skip
    free, spot, paid = found["steps"][1:]
    assert ("colab", "T4") in {(each["provider"], each["gpu"]) for each in free["offers"]}
    assert all(each["mode"] == "spot" and each["price_micros"] > 0 for each in spot["offers"])
    assert all(each["mode"] == "on-demand" for each in paid["offers"])
    assert "K80" in {each["gpu"] for each in found["avoid"]}


def test_preemptible_prices_stand_beside_those_on_demand(stocked: Tera) -> None:
    rows = stocked.ok("offers", "--gpu", "L4", "--by", "type", "--json").json
    (l4,) = rows
    assert l4["modes"]["spot"]["price_micros"] == 350_000
    assert l4["modes"]["spot"]["region"] == "us-east-2"
    assert l4["modes"]["on-demand"]["region"] == "us-east-1"
    table = stocked.ok("offers", "--gpu", "L4", "--by", "type", columns=120).out.splitlines()
    assert len(table) == 2
    assert "ON-DEMAND USD/hour" in table[0]
    assert "SPOT USD/hour" in table[0]


# --- language models -------------------------------------------------------------------------------------------------


def test_lora_of_8_billion_parameters_runs_on_one_24_gb_card(tera: Tera) -> None:
    job = [
        "llama-3.1-8b",
        "--batch",
        "1",
        "--seq",
        "2048",
        "--precision",
        "bf16",
        "--lora-rank",
        "16",
        "--gradient-checkpointing",
        "--steps",
        "1k",
    ]
    made = plan(tera, *job, "--gpus", "1", "--top", "100")
    assert 24 << 30 in {choice["offer"]["gpu_memory_bytes"] for choice in made["choices"]}
    smaller = plan(tera, *job, "--load-in", "4bit", "--lora-targets", "all", "--gpus", "1", "--top", "100")
    assert min(choice["offer"]["gpu_memory_bytes"] for choice in smaller["choices"]) <= 16 << 30


def test_a_full_fine_tune_is_sharded_over_8_cards_of_40_gb(tera: Tera) -> None:
    job = ["llama-8b", "--batch", "1", "--seq", "2048", "--precision", "amp-bf16", "--gradient-checkpointing"]
    made = plan(
        tera, *job, "--shard", "--gpus", "8", "--steps", "1000", "--gpu", "A100-40", "--gpu", "A100-80"
    )
    assert {choice["gpu_count"] for choice in made["choices"]} == {8}
    assert 40 << 30 in {choice["offer"]["gpu_memory_bytes"] for choice in made["choices"]}


def test_the_memory_of_32k_tokens_of_inference_is_known(tera: Tera) -> None:
    words = ["--batch", "1", "--task", "infer", "--kv-cache", "--seq", "32768", "--precision", "bf16"]
    (card,) = tera.ok("estimate", "llama-8b", *words, "--gpu", "A6000", "--json").json["gpus"]
    assert card["fits"]
    assert 18 << 30 < card["need_bytes"] < 40 << 30


@pytest.mark.parametrize(
    "name",
    [
        "qwen2.5-7b",
        "mistral-7b",
        "llama-3.1-70b",
        "whisper-small",
        "sdxl",
        "yolov8n",
        "meta-llama/Llama-3.1-8B",
    ],
)
def test_a_well_known_model_is_known_by_name(stocked: Tera, name: str) -> None:
    found = stocked.ok(
        "estimate", name, "--batch", "1", "--precision", "bf16", "--gpu", "B200", "--json"
    ).json
    assert found["gpus"][0]["need_bytes"] > 0


def test_models_are_listed_as_json(stocked: Tera) -> None:
    models = stocked.ok("estimate", "--models", "--json").json
    assert {"model": "resnet50", "kind": "image"} in models
    assert len(models) == len(stocked.ok("estimate", "--models").out.split())


# --- deadlines, budgets, cards ---------------------------------------------------------------------------------------


def test_imagenet_by_friday_for_less_than_100_dollars(tera: Tera) -> None:
    made = plan(tera, *IMAGENET, "--deadline", "2w", "--budget", "$100")
    assert made["choices"]
    assert all(choice["cost"]["expected_micros"] <= 100_000_000 for choice in made["choices"])
    assert made["assumptions"]["budget_micros"] == 100_000_000
    friday = tera.run("plan", *IMAGENET, "--deadline", "friday", "--budget", "$100", "--json")
    assert friday.code in (0, 3)  # on a Friday evening there is no time left
    assert "T23:59" in friday.json["assumptions"]["deadline"]


def test_a_plan_on_given_cards_has_no_others(tera: Tera) -> None:
    made = plan(tera, *IMAGENET, "--gpu", "H100", "--gpu", "A100")
    assert made["choices"]
    assert all(choice["offer"]["gpu"].startswith(("H100", "A100")) for choice in made["choices"])
    assert made["rejected_counts"]["other_gpu"] > 0
    unknown = tera.run("plan", *IMAGENET, "--gpu", "H1000")
    assert (unknown.code, "H100" in unknown.hint) == (2, True)


def test_a_plan_of_one_source_has_no_offers_of_others(tera: Tera) -> None:
    made = plan(tera, "--hours", "10", "--source", "shipped", "--top", "1000")
    assert {choice["offer"]["source"] for choice in made["choices"]} == {"shipped"}
    assert made["rejected_counts"]["other_source"] > 0
    unknown = tera.run("plan", "--hours", "10", "--source", "shiped")
    assert "`shipped`" in unknown.hint


def test_images_that_few_vcpus_decode_are_a_warning(stocked: Tera) -> None:
    job = ["resnet18", "--batch", "256", "--precision", "amp-fp16", "--epochs", "90", "--samples", "1.28M"]
    made = plan(stocked, *job, "--gpu", "V100-32", "--source", "current")
    (warning,) = [each for each in made["warnings"] if "wait for their data" in each]
    assert "40 vCPUs" in warning
    assert made["assumptions"]["images_per_second_per_vcpu"] == 100
    own_words = ["gpt2", "--batch", "8", "--steps", "100", "--gpu", "V100-32", "--source", "current"]
    assert not any("wait for their data" in each for each in plan(stocked, *own_words)["warnings"])


def test_four_own_cards_compete_with_the_cloud(stocked: Tera, tmp_path: Path) -> None:
    shutil.copytree(stocked.home, tmp_path / "home")
    mine = Tera(tmp_path / "home")
    mine.ok(
        *(
            "plan",
            "server",
            "add",
            "lab",
            "--gpu",
            "RTX 4090",
            "--count",
            "4",
            "--purchase",
            "12000",
            "--years",
            "3",
        ),
        *("--watts", "1800", "--power", "0.15"),
    )
    made = plan(mine, *IMAGENET, "--gpu", "RTX 4090")
    assert {choice["mode"] for choice in made["choices"]} == {"owned", "on-demand"}
    only = plan(mine, *IMAGENET, "--source", "own-servers")
    assert [choice["offer"]["provider"] for choice in only["choices"]] == ["own"]


def test_the_largest_batch_for_an_11_gb_card(tera: Tera) -> None:
    words = [
        "estimate",
        "resnet50",
        "--batch",
        "32",
        "--memory-limit",
        "11GB",
        "--gpu",
        "RTX2080Ti",
        "--json",
    ]
    limit, card = tera.ok(*words).json["gpus"]
    assert limit["largest_batch"] == pytest.approx(card["largest_batch"], rel=0.03)


def test_a_consumer_card_can_be_asked_about(stocked: Tera) -> None:
    names = [
        "GTX 1660",
        "RTX 2070 Super",
        "RTX 3080 12GB",
        "Titan X",
        "V100S",
        "RTX 4090 Mobile",
        "RX 7900 XTX",
    ]
    gpus = [word for name in names for word in ("--gpu", name)]
    cards = stocked.ok("estimate", "resnet18", "--batch", "16", *gpus, "--json").json["gpus"]
    assert [each["gpu"] for each in cards] == [
        "GTX1660", "RTX2070Super", "RTX3080-12", "TitanX", "V100S", "RTX4090-laptop", "RX7900XTX",
    ]  # fmt: skip
    assert all(each["step_seconds"] for each in cards)
    refused = stocked.run("estimate", "resnet18", "--batch", "16", "--gpu", "Arc A770")
    assert "estimates do not support Intel" in refused.err


# --- other chips, many machines, plain machines ----------------------------------------------------------------------


def test_an_amd_card_has_a_price_and_an_estimate(tera: Tera) -> None:
    assert tera.offers("--gpu", "MI300X")[0]["price_micros"] > 0
    (card,) = tera.ok("estimate", "resnet50", "--batch", "64", "--gpu", "MI300X", "--json").json["gpus"]
    assert card["step_seconds"]
    assert "ROCm" in card["evidence"]


def test_a_tpu_has_a_price_and_no_estimate(tera: Tera) -> None:
    assert any(offer["price_micros"] for offer in tera.offers("--gpu", "TPU-v5e"))
    refused = tera.run("estimate", "resnet50", "--batch", "64", "--gpu", "TPU-v5e")
    assert "cannot be estimated" in refused.err
    assert "tera offers" in refused.hint


def test_a_tpu_is_planned_by_the_hour(tera: Tera) -> None:
    made = plan(tera, "--hours", "5", "--gpu", "TPU-v5e", "--mode", "on-demand")
    first = made["choices"][0]
    assert first["offer"]["gpu"] == "TPU-v5e"
    assert first["cost"]["expected_micros"] == pytest.approx(5 * first["offer"]["price_micros"], abs=1)
    assert not any(c["offer"]["gpu"].startswith("TPU") for c in plan(tera, "--hours", "5")["choices"])
    refused = tera.run("plan", *IMAGENET, "--gpu", "TPU-v5e")
    assert (refused.code, "with `--hours`" in refused.hint) == (3, True)


def test_a_comparison_leaves_out_what_its_provider_has_retired(tera: Tera) -> None:
    words = ["compare", "--provider", "azure", "--gpu", "V100-16", "--newer-than", "2020-01-01"]
    told = tera.ok(*words)
    assert "of types that their provider has retired" in told.err
    assert not any(each["modes"] for each in tera.ok(*words, "--json").json)
    named = tera.ok(*words, "--source", "shipped", "--json").json
    assert [each["modes"]["on-demand"]["instance_type"] for each in named] == ["NC12s_v3"]
    listed = tera.ok("offers", *words[1:], columns=120).out.splitlines()
    assert listed[1:]
    assert all("retired" in line for line in listed[1:])


def test_a_price_far_from_that_of_others_is_flagged_and_never_chosen(stocked: Tera, tmp_path: Path) -> None:
    shutil.copytree(stocked.home, tmp_path / "home")
    mine = Tera(tmp_path / "home")
    usual = [
        row(name, f"{name}-1", "H100 SXM5", 1, price)
        for name, price in (("runpod", "2.69"), ("nebius", "2.95"), ("verda", "2.29"))
    ]
    odd = [row("do", "typo", "H100 SXM5", 1, "900"), row("cudo", "cheap", "H100 SXM5", 1, "0.08"),
           row("ovhcloud", "dear", "H100 SXM5", 1, "25")]  # fmt: skip
    done = mine.ok("offers", "import", "market", own(tmp_path / "market.csv", [*usual, *odd]))
    assert "2    price far from that of other providers" in done.out
    offers = mine.offers("--gpu", "H100", "--source", "market")
    assert {o["provider"] for o in offers if "far:price" in o["flags"]} == {"do", "cudo"}
    made = plan(mine, "--hours", "1", "--gpu", "H100", "--source", "market", "--top", "100")
    assert [c["offer"]["provider"] for c in made["choices"]] == ["verda", "runpod", "nebius", "ovhcloud"]
    assert made["rejected_counts"]["price_doubtful"] == 2
    assert "at cudo (its price is uncertain)" in mine.ok("plan", "--hours", "1", "--gpu", "H100").err


def test_a_named_source_does_not_hide_that_its_price_is_outdated(stocked: Tera, tmp_path: Path) -> None:
    shutil.copytree(stocked.home, tmp_path / "home")
    mine = Tera(tmp_path / "home")
    old = {
        **row("lambda", "gpu_1x_h100_sxm5", "H100 SXM5", 1, "1.99", region="us-west-1"),
        "as_of": "2026-05-01",
    }
    gone = row("azure", "Standard_NC6s_v3", "V100 16GB", 1, "0.50", region="eastus")
    mine.ok("offers", "import", "older", own(tmp_path / "older.csv", [old, gone]))
    newer = plan(mine, "--hours", "1", "--gpu", "H100", "--provider", "lambda", "--region", "us-west-1")
    assert [choice["cost"]["expected_micros"] for choice in newer["choices"]] == [3_290_000]
    assert newer["rejected_counts"]["outdated"] == 1
    named = plan(mine, "--hours", "1", "--source", "older")
    assert len(named["choices"]) == 2
    assert any("a newer price is stored for 1 of 2 choices" in each for each in named["warnings"])
    assert any("retired by the provider" in each and "2025-09-30" in each for each in named["warnings"])
    assert not any("newer price" in each or "retired" in each for each in newer["warnings"])


def test_several_machines_use_the_network_that_the_provider_publishes(tera: Tera) -> None:
    job = [
        "llama-8b",
        "--batch",
        "1",
        "--seq",
        "2048",
        "--precision",
        "amp-bf16",
        "--shard",
        "--steps",
        "1000",
    ]
    made = plan(tera, *job, "--gpu", "H100", "--provider", "aws", "--instances", "2", "--gpus", "16")
    assert made["choices"]
    assert any("3200 Gbit/s" in warning for warning in made["warnings"])


def test_the_cheapest_24_gb_card_around_the_clock(tera: Tera) -> None:
    made = plan(tera, "--memory-min", "24", "--gpus", "1", "--hours-per-month", "730")
    costs = [choice["cost"]["expected_micros"] for choice in made["choices"]]
    assert costs == sorted(costs)
    assert all(choice["offer"]["gpu_memory_bytes"] >= 24 << 30 for choice in made["choices"])


def test_a_t4_with_16_vcpus_and_64_gb(tera: Tera) -> None:
    offers = tera.offers("--gpu", "T4", "--vcpu-min", "16", "--ram-min", "64")
    assert offers
    assert all(o["vcpus"] >= 16 and o["ram_bytes"] >= 64 << 30 for o in offers)


def test_reserved_offers_that_nobody_lists_are_explained(tera: Tera) -> None:
    none = tera.ok("offers", "--gpu", "H100", "--count", "8", "--mode", "reserved")
    assert "No offers match: `--mode` removed" in none.err


# --- purposes --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("purpose", "cards", "avoided"),
    [
        ("large-training", {"A100", "H100", "V100"}, {"RTX4090", "K80", "T4"}),
        ("training", {"A5000", "L4", "RTX4090"}, {"K80", "K40"}),
        ("inference", {"L4", "T4"}, {"M40", "K80"}),
        ("hpc", {"A100", "H100", "V100"}, {"T4", "RTX4090"}),
        ("rendering", {"L4", "A5000", "RTX4090"}, {"A100-SXM4-80", "H100-SXM5"}),
        ("video", {"L4", "RTX4090"}, {"A100-SXM4-80", "H100-SXM5"}),
    ],
)
def test_a_purpose_leads_to_cards_and_offers(
    stocked: Tera, purpose: str, cards: set[str], avoided: set[str]
) -> None:
    found = stocked.ok("recommend", purpose, "--limit", "40", "--json").json
    named = {each["gpu"] for each in found["cards"]}
    families = {name.split("-")[0] for name in named}
    assert cards <= families
    assert not avoided & named
    assert avoided <= {each["gpu"] for each in found["avoid"]}
    for fit in ("first", "suitable"):
        prices = [each["price_per_unit"] for each in found["cards"] if each["fit"] == fit]
        assert prices == sorted(prices)
    assert all(each["reason"] and each["offer"]["gpu"] == each["gpu"] for each in found["cards"])


def test_offers_are_filtered_and_sorted_by_double_precision(tera: Tera) -> None:
    offers = tera.offers(
        "--fp64-min", "5", "--sort", "price-per-fp64", "--mode", "on-demand", "--limit", "200"
    )
    assert offers
    gpus = {each["gpu"]: each for each in tera.ok("gpus", "--json").json}
    rates = [gpus[offer["gpu"]] for offer in offers]
    assert all(max(each["fp64_tflops"], each["fp64_tensor_tflops"]) >= 5 for each in rates)
    per_unit = [
        offer["price_usd_per_hour"] / offer["gpu_count"] / offer["gpu_share"] / each["fp64_tflops"]
        for offer, each in zip(offers, rates, strict=True)
        if offer["price_usd_per_hour"] is not None and offer["gpu_count"]
    ]
    assert all(b >= a * 0.9999 for a, b in pairwise(per_unit))


# --- places ----------------------------------------------------------------------------------------------------------

PLACES = "needs the table of places"


def has_places(tera: Tera) -> bool:
    return "--country" in tera.ok("offers", "--help").out


def test_the_cheapest_spot_card_in_europe(stocked: Tera) -> None:
    if not has_places(stocked):
        pytest.skip(PLACES)
    offers = stocked.offers("--gpu", "A100-80", "--mode", "spot", "--region", "EU", "--source", "current")
    assert [(o["provider"], o["price_micros"]) for o in offers] == [("verda", 895_000), ("gcp", 2_868_000)]


def test_offers_in_the_united_states_have_none_in_australia(stocked: Tera) -> None:
    if not has_places(stocked):
        pytest.skip(PLACES)
    offers = stocked.offers("--gpu", "H100", "--region", "US", "--source", "current")
    assert {o["region"] for o in offers} == {"us-east-1", "us-west-1"}


def test_what_cannot_keep_the_deadline_is_not_called_suitable(tera: Tera) -> None:
    words = [*IMAGENET, "--deadline", "1h", "--instances", "1-16"]
    made = plan(tera, *words)
    assert "free" not in made["rejected_counts"]
    assert any("samples per step in total" in warning for warning in made["warnings"])
    assert "at colab" not in tera.ok("plan", *words).err
    assert "at colab" in tera.ok("plan", *IMAGENET).err


def test_a_machine_of_a_market_is_never_multiplied(stocked: Tera) -> None:
    if not has_places(stocked):
        pytest.skip(PLACES)
    made = plan(stocked, *IMAGENET, "--instances", "1-16", "--top", "1000", "--source", "current")
    assert all(
        choice["instances"] == 1 for choice in made["choices"] if choice["offer"]["provider"] == "vast"
    )
