"""Where offers are, how old their prices are, and what they really cost, on a small catalog."""

from pathlib import Path
from typing import Any

import pytest
from tests.story.tera import Tera
from tests.unit.offer.catalogs import Cells, machine, skypilot

DAYS = ("--as-of", "2026-08-22", "--as-of", "azure=2025-09-10")


@pytest.fixture
def shop(tera: Tera, tmp_path: Path) -> Tera:
    """A home with a small catalog of the layout that SkyPilot publishes."""
    folder = tmp_path / "catalog"

    def offer(cloud: str, card: str, region: str, price: str, spot: str = "", **more: object) -> None:
        rows.setdefault(cloud, []).append(
            machine(card, 1, 0, price=price, SpotPrice=spot, Region=region, GpuInfo="", **more)
        )

    rows: dict[str, list[Cells]] = {}
    offer("aws", "A100-80GB", "us-east-1", "4", "1.9", InstanceType="p4de", AvailabilityZone="use1-az1")
    offer("aws", "A100-80GB", "eu-south-2", "5", "2.4", InstanceType="p4de", AvailabilityZone="eus2-az1")
    offer("scaleway", "A100-80GB", "nl-ams", "6", "2.868", InstanceType="big")
    offer("lambda", "A100-80GB", "australia-east-1", "1.5", InstanceType="gpu_1x_a100_sxm4")
    offer("lambda", "H100", "us-east-1", "2.5", InstanceType="gpu_1x_h100_pcie")
    offer("verda", "A100-80GB", "FIN-01", "1.7", "0.895", InstanceType="1A100.22V")
    offer("runpod", "A100-80GB", "CZ", "1.6", "1.39", InstanceType="1x_A100", AvailabilityZone="EU-CZ-1")
    offer("vast", "RTX3090", "Sichuan, CN, AS", "0.2", InstanceType="8x-RTX_3090-1-1", AcceleratorCount=8)
    offer("hyperbolic", "A100-80GB", "default", "0.9", InstanceType="1x-A100")
    offer("azure", "A100-80GB", "eastus", "3.7", "0.5", InstanceType="Standard_NC24ads_A100_v4")
    offer("azure", "Radeon MI25", "eastus", "0.2", "0.03", InstanceType="Standard_NV4as_v4")
    for cloud, machines in rows.items():
        skypilot(folder, cloud, machines)
    tera.ok("offers", "import", "skypilot", folder, *DAYS)
    return tera


def places(found: list[dict[str, Any]]) -> set[str]:
    return {f"{each['provider']} {each['region']}" for each in found}


def test_the_us_are_neither_australia_nor_spain(shop: Tera) -> None:
    ours = ("--source", "skypilot", "--gpu", "A100", "--gpu", "H100")
    assert places(shop.offers(*ours, "--region", "us")) == {
        "aws us-east-1",
        "lambda us-east-1",
        "azure eastus",
    }
    assert {each["country"] for each in shop.offers(*ours, "--region", "US")} == {"US"}
    listed = shop.ok("offers", *ours, "--region", "US")
    assert "1 in an unknown country (`tera offers regions --unplaced` lists them)" in listed.err
    assert "hyperbolic" in shop.ok("offers", "regions", "--unplaced").out
    assert shop.ok("offers", "regions", "--provider", "verda", "--json").json[0]["country_name"] == "Finland"


def test_the_cheapest_spot_machine_in_europe(shop: Tera) -> None:
    spot = ("--source", "skypilot", "--gpu", "A100-80", "--mode", "spot")
    found = shop.offers(*spot, "--region", "europe")
    assert [(each["provider"], each["price_usd_per_hour"]) for each in found] == [
        ("verda", 0.895), ("runpod", 1.39), ("aws", 2.4), ("scaleway", 2.868),
    ]  # fmt: skip
    assert places(shop.offers(*spot, "--region", "EU", "--not-in", "finland", "--not-in", "NL")) == {
        "runpod CZ", "aws eu-south-2",
    }  # fmt: skip
    assert places(shop.offers(*spot, "--country", "ES")) == {"aws eu-south-2"}
    plan = shop.ok("plan", "--hours", "10", "--mode", "spot", "--region", "EU", "--json").json
    assert plan["choices"][0]["offer"]["provider"] == "verda"
    assert {each["offer"]["country"] for each in plan["choices"]} <= {"FI", "CZ", "ES", "NL"}
    assert plan["rejected_counts"]["region_unknown"] > 0


def test_each_file_has_its_own_date(shop: Tera) -> None:
    by_provider = {each["provider"]: each["as_of"] for each in shop.offers("--source", "skypilot", "--all")}
    assert by_provider["azure"] == "2025-09-10"
    assert by_provider["aws"] == "2026-08-22"
    newer = shop.offers("--newer-than", "2026-01-01", "--all")
    assert newer
    assert "azure" not in {each["provider"] for each in newer}
    plan = shop.ok("plan", "--hours", "10", "--newer-than", "2026-01-01", "--json").json
    assert all(each["offer"]["as_of"] >= "2026-01-01" for each in plan["choices"])
    assert plan["rejected_counts"]["too_old"] > 0
    assert "azure" not in shop.ok("compare", "--newer-than", "2026-01-01").out


def test_a_catalog_without_a_date_says_so(tera: Tera, tmp_path: Path) -> None:
    skypilot(tmp_path / "catalog", "aws", [machine("T4", 1, 0, GpuInfo="T4")])
    done = tera.ok("offers", "import", "skypilot", tmp_path / "catalog")
    assert "prices of unknown date" in done.out
    assert "The date of 1 price is unknown; give it with `--as-of DATE`" in done.err
    (offer,) = tera.offers("--source", "skypilot")
    assert offer["as_of"] == ""
    assert "unknown" in tera.ok("offers", "--source", "skypilot").out
    assert tera.offers("--source", "skypilot", "--newer-than", "90d") == []


def test_a_disk_is_never_silently_free(shop: Tera) -> None:
    words = ("plan", "--hours-per-month", "5", "--disk", "50", "--gpus", "1", "--top", "200")
    plan = shop.ok(*words, "--json").json
    counted = [choice for choice in plan["choices"] if not choice["uncounted"]]
    assert plan["choices"][: len(counted)] == counted
    assert all(any(part["what"] == "disk" for part in choice["parts"]) for choice in counted)
    assert {c["offer"]["provider"] for c in plan["choices"]} - {c["offer"]["provider"] for c in counted} >= {
        "verda"
    }
    for columns in (60, 80, 120):
        table = shop.run(*words, columns=columns)
        (line,) = (line for line in table.out.splitlines() if " hyperbolic " in line)
        assert "+" in line, "the mark is shown on any terminal"
        assert "the price of the disk is unknown at" in table.err


def test_a_stopped_machine_that_is_still_billed_is_named(shop: Tera) -> None:
    said = "end the machine between uses at lambda"
    assert said in shop.ok("plan", "--hours-per-month", "5", "--provider", "lambda").err
    assert said not in shop.ok("plan", "--hours", "5", "--provider", "lambda").err


def test_the_k80_is_said_to_be_too_old_for_pytorch(tera: Tera) -> None:
    plan = tera.ok("plan", "--hours", "5", "--provider", "aws", "--top", "20")
    assert "PyTorch 2.1 and later do not run on K80" in plan.err


def test_an_offer_of_a_market_is_one_machine(shop: Tera) -> None:
    plan = shop.ok("plan", "--hours", "5", "--instances", "1-4", "--top", "100", "--json").json
    assert {c["instances"] for c in plan["choices"] if c["offer"]["provider"] == "vast"} == {1}
    assert any(c["instances"] == 4 for c in plan["choices"])


def test_parts_of_gpus_are_shown_on_request(shop: Tera) -> None:
    assert shop.offers("--source", "skypilot", "--gpu", "MI25") == []
    part, *_ = shop.offers("--source", "skypilot", "--gpu", "MI25", "--slices")
    assert (part["gpu_share"], part["gpu_memory_bytes"]) == (0.125, 2 << 30)
    assert "1× MI25 1/8" in shop.ok("offers", "--gpu", "MI25", "--slices").out
    assert "(`--slices` shows them)" in shop.ok("offers", "--gpu", "MI25").err
    words = ("plan", "--hours", "5", "--source", "skypilot", "--json")
    plans = [shop.ok(*words, *more).json for more in ((), ("--slices",))]
    assert [any(c["offer"]["gpu"] == "MI25" for c in plan["choices"]) for plan in plans] == [False, True]
    assert plans[0]["rejected_counts"]["slice"] == 2


def test_a_retired_type_is_named_and_not_planned_with(shop: Tera) -> None:
    words = ("--gpu", "MI25", "--slices")
    assert (
        "Retired by their provider, and not planned with: Standard_NV4as_v4" in shop.ok("offers", *words).err
    )
    assert shop.offers(*words)[0]["retired"] == "2026-09-30"
    none = shop.run("plan", "--hours", "5", *words)
    assert (none.code, "retired: 2" in none.err) == (3, True)
    assert shop.ok("plan", "--hours", "5", *words, "--source", "skypilot", "--json").json["choices"]


def test_the_variant_comes_from_the_type(shop: Tera) -> None:
    (h100,) = shop.offers("--source", "skypilot", "--gpu", "H100")
    assert (h100["gpu"], "inferred:variant" in h100["flags"]) == ("H100-PCIe", False)
    guessed = shop.ok("plan", "--hours", "5", "--provider", "runpod")
    assert "1× A100-SXM4-80?" in guessed.out
    assert "`?` marks uncertain values" in guessed.err


def test_what_never_ends_is_rejected(shop: Tera) -> None:
    job = ("plan", "resnet50", "--batch", "128", "--steps", "1000000", "--mode", "spot", "--provider", "aws")
    done = shop.run(*job, "--interruptions", "2", "--checkpoint", "600", "--restart", "3600", "--json")
    assert done.code == 3
    assert done.json["rejected_counts"]["never_ends"] > 0
    explained = shop.ok(*job, "--explain").out
    assert "Checkpoints: " in explained
    assert "a checkpoint of 60 s every 49 min" in explained


def test_reserved_prices_are_said_to_be_missing(shop: Tera) -> None:
    said = "The public catalogs have no reserved prices"
    assert said in shop.ok("offers", "--gpu", "H100", "--mode", "reserved").err
    assert said in shop.run("plan", "--hours", "100", "--gpus", "8", "--mode", "reserved").err


def test_an_exclusion_that_excludes_nothing_is_told(shop: Tera) -> None:
    told = "no place is called `chna`, so `--not-in` excludes nothing"
    assert told in shop.ok("offers", "--not-in", "chna").err
    assert told in shop.ok("compare", "--not-in", "chna").err
    assert any(
        told in each
        for each in shop.ok("plan", "--hours", "5", "--not-in", "chna", "--json").json["warnings"]
    )
    assert "excludes nothing" not in shop.ok("offers", "--not-in", "china").err


@pytest.mark.parametrize("option", ["--budget", "--deadline", "--newer-than", "--memory-min"])
def test_an_empty_limit_is_refused_and_not_ignored(tera: Tera, option: str) -> None:
    refused = tera.run("plan", "--hours", "5", option, "")
    assert (refused.code, "`` is not" in refused.err) == (2, True)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--country", "Atlantis"), "Unknown country `Atlantis`"),
        (("--region", " "), "`--region` needs a place"),
        (("--not-in", "x" * 100), "`--not-in` needs a place"),
        (("--newer-than", "soon"), "`soon` is not an age of prices"),
        (("--newer-than", "2030-01-01"), "is in the future"),
    ],
)
def test_wrong_places_and_ages_get_one_sentence(tera: Tera, words: tuple[str, ...], sentence: str) -> None:
    for command in (("offers",), ("plan", "--hours", "5"), ("compare",)):
        done = tera.run(*command, *words)
        assert done.code == 2
        assert sentence in done.err
