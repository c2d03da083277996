"""Plans: the three cases of the users' documents, own hosts, and errors."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.story.tera import Tera


def answer(tera: Tera, *words: str | Path) -> Any:
    return tera.ok(*words).json


def test_48_gb_per_month_finds_the_cheapest_offer_of_the_survey(tera: Tera) -> None:
    need = ["--memory-total-min", "48", "--gpus", "2-4", "--hours-per-month", "730"]
    plan = answer(tera, "plan", *need, "--mode", "monthly", "--currency", "CNY", "--json")
    first = plan["choices"][0]
    assert (first["offer"]["provider"], first["offer"]["gpu"], first["gpu_count"]) == ("tencent", "M40-24", 2)
    assert first["cost"]["expected_micros"] == 5_856_000_000
    costs = [choice["cost"]["expected_micros"] / 1e6 for choice in plan["choices"]]
    assert costs == [5856.0, 5954.6, 6792.5, 8094.0, 8169.1, 9000.0, 12660.0]


@pytest.mark.parametrize(("hours", "p4000", "t4"), [("5", 2.55, 1.75), ("10", 5.10, 3.50)])
def test_light_use_costs_match_the_notes(tera: Tera, hours: str, p4000: float, t4: float) -> None:
    """The notes compare the rents, find Paperspace's disk of 5 USD a drag, and choose Google."""
    plan = answer(tera, "plan", "--hours-per-month", hours, "--disk", "50", "--top", "60", "--json")
    parts = {
        (c["offer"]["provider"], c["offer"]["gpu"], c["mode"]): {
            part["what"]: part["micros"] / 1e6 for part in c["parts"]
        }
        for c in plan["choices"]
    }
    assert parts["paperspace", "P4000", "on-demand"] == {"rent": p4000, "disk": 5.0}
    assert parts["gcp", "T4", "spot"] == {"rent": t4, "disk": 5.0}
    assert sum(parts["gcp", "V100-SXM2", "spot"].values()) < sum(parts["aws", "V100-SXM2", "spot"].values())
    counted = [not c["uncounted"] for c in plan["choices"]]
    assert counted == sorted(counted, reverse=True), "complete costs come first"
    unknown = {c["offer"]["provider"] for c in plan["choices"] if c["uncounted"]}
    assert "tencent" in unknown
    (said,) = (each for each in plan["warnings"] if "the price of the disk is unknown" in each)
    assert "tencent" in said


def test_every_offer_is_chosen_or_has_one_reason(tera: Tera) -> None:
    plan = answer(tera, "plan", "--hours", "100", "--gpus", "4", "--top", "1000", "--json")
    offers = len(plan["choices"]) + sum(each["offer"]["offers"] for each in plan["rejected"])
    assert offers == 136
    assert all(each["code"] and each["reason"] for each in plan["rejected"])
    codes = {each["code"] for each in plan["rejected"]}
    assert {"too_few_gpus", "price_unknown"} <= codes


def test_free_offers_are_named_only_where_they_would_do(tera: Tera) -> None:
    one = tera.ok("plan", "--hours", "5", "--gpus", "1")
    assert "Free, but may end at any time" in one.err
    assert "1× T4 at colab" in one.err
    assert "Free" not in tera.ok("plan", "--hours", "5", "--gpus", "4").err
    plan = answer(tera, "plan", "--hours", "5", "--mode", "free", "--json")
    assert {choice["offer"]["provider"] for choice in plan["choices"]} == {"colab", "paperspace"}


def test_why_lists_every_rejected_offer_with_its_reason(tera: Tera) -> None:
    words = ["plan", "--hours", "100", "--gpus", "4", "--top", "1000", "--json"]
    by_shape, by_offer = answer(tera, *words), answer(tera, *words, "--why")
    assert by_shape["choices"] == by_offer["choices"]
    assert by_shape["rejected_counts"] == by_offer["rejected_counts"]
    each = [(one["offer"]["id"], one["code"]) for one in by_offer["rejected"]]
    assert len({id for id, _ in each}) == len(each)
    assert not {id for id, _ in each} & {one["offer"]["id"] for one in by_offer["choices"]}
    counts = Counter(code for _, code in each if code != "dearer")
    counts["no_gpu"] = by_offer["rejected_counts"].get("no_gpu", 0)
    assert +counts == by_offer["rejected_counts"]
    stored = {one["id"] for one in answer(tera, "offers", "--all", "--json")}
    assert stored == {one["offer"]["id"] for one in by_offer["choices"]} | {id for id, _ in each}


def test_offers_in_other_regions_are_rejected_with_a_reason(tera: Tera) -> None:
    everywhere = answer(tera, "plan", "--hours", "10", "--json", "--why")
    plan = answer(tera, "plan", "--hours", "10", "--region", "beijing", "--json", "--why")
    assert plan["choices"]
    assert all("Beijing" in choice["offer"]["region"] for choice in plan["choices"])
    elsewhere = [one for one in plan["rejected"] if one["code"] == "other_region"]
    assert len(elsewhere) == plan["rejected_counts"]["other_region"] > 50
    assert not any("Beijing" in one["offer"]["region"] for one in elsewhere)
    assert "other_region" not in everywhere["rejected_counts"]


def test_several_machines_may_meet_a_deadline_that_one_does_not(tera: Tera) -> None:
    job = [
        "plan",
        "vgg16",
        "--batch",
        "128",
        "--epochs",
        "20",
        "--samples",
        "1281167",
        "--provider",
        "lambda",
    ]
    alone = tera.run(*job, "--gpus", "1-8", "--deadline", "3h", "--json")
    assert alone.code == 3
    plan = answer(tera, *job, "--instances", "1-4", "--deadline", "3h", "--json")
    assert plan["choices"]
    for choice in plan["choices"]:
        assert choice["instances"] > 1
        assert choice["gpu_count"] == choice["instances"] * choice["offer"]["gpu_count"]
        assert choice["hours"]["p90"] <= 3
        assert sum(part["micros"] for part in choice["parts"]) == choice["cost"]["expected_micros"]
    assert any("uses 10 Gbit/s between machines" in warning for warning in plan["warnings"])
    assert tera.run("plan", "--hours", "5", "--instances", "0").code == 2
    assert tera.run("plan", "--hours", "5", "--network", "25").code == 2


def test_only_sharded_jobs_may_add_up_the_memory_of_cards(tera: Tera) -> None:
    job = [
        "plan",
        "llama-8b",
        "--batch",
        "1",
        "--precision",
        "bf16",
        "--steps",
        "1000",
        "--provider",
        "lambda",
        "--json",
    ]
    assert tera.run(*job).code == 3
    plan = answer(tera, *job, "--shard")
    assert plan["choices"]
    assert all(choice["gpu_count"] > 1 for choice in plan["choices"])
    assert any("memory of sharded jobs was checked" in warning for warning in plan["warnings"])
    assert "needs a MODEL" in tera.run("plan", "--hours", "5", "--shard").err


def test_own_hosts_are_in_the_same_list(tera: Tera) -> None:
    price = ["--purchase", "32000", "--years", "4", "--watts", "1600", "--power", "0.15", "--hosting", "120"]
    use = ["--staff", "300", "--utilisation", "0.6"]
    tera.ok("plan", "server", "add", "lab1", "--gpu", "V100", "--count", "4", *price, *use)
    first = answer(tera, "plan", "--hours", "100", "--gpus", "4", "--json")["choices"][0]
    assert (first["offer"]["provider"], first["offer"]["instance_type"], first["mode"]) == (
        "own",
        "lab1",
        "owned",
    )
    fixed = 32000 / 48 + 120 + 300
    assert first["cost"]["expected_micros"] / 1e6 == pytest.approx(100 * (fixed / 0.6 / 730 + 0.24), abs=0.01)
    assert "lab1" in tera.ok("plan", "server", "list").out
    assert answer(tera, "plan", "server", "remove", "lab1", "--json")["name"] == "lab1"
    assert answer(tera, "plan", "server", "list", "--json") == []


def test_the_old_name_of_owned_servers_works_and_names_the_new_one(tera: Tera) -> None:
    set_lab = ["lab1", "--gpu", "V100", "--count", "4", "--purchase", "32000", "--years", "4"]
    assert "use `tera plan server add`" in tera.ok("hosts", "add-price", *set_lab).err
    listed = tera.ok("hosts")
    assert "use `tera plan server list`" in listed.err
    assert listed.out == tera.ok("plan", "server", "list").out
    assert "use `tera plan server remove`" in tera.ok("hosts", "remove", "lab1").err
    assert answer(tera, "hosts", "--json") == []
    assert not any(line.split()[:1] == ["hosts"] for line in tera.ok("--help").out.splitlines())


def test_the_file_with_the_old_name_is_read_until_a_new_one_is_written(tera: Tera) -> None:
    add = ["--gpu", "V100", "--count", "4", "--purchase", "32000", "--years", "4"]
    tera.ok("plan", "server", "add", "lab1", *add)
    (tera.home / "servers.json").rename(tera.home / "hosts.json")
    assert [each["name"] for each in answer(tera, "plan", "server", "list", "--json")] == ["lab1"]
    tera.ok("plan", "server", "remove", "lab1")
    assert answer(tera, "plan", "server", "list", "--json") == [], "the old file counts no more"
    (tera.home / "hosts.json").unlink()


def test_buy_or_rent_finds_the_break_even_point(tera: Tera, tmp_path: Path) -> None:
    price = ["--purchase", "16000", "--years", "3", "--resale", "2000", "--hosting", "80", "--staff", "200"]
    words = [
        "plan",
        "buy-or-rent",
        "--gpu",
        "V100",
        "--count",
        "2",
        "--watts",
        "900",
        "--power",
        "0.15",
        *price,
    ]
    found = answer(tera, *words, "--json")
    on_demand = next(each for each in found["break_even"] if each["rent"]["mode"] == "on-demand")
    fixed, power, rent = 14000 / 36 + 280, 0.135 * 730, 3.44 * 730  # a machine with two V100 at Tencent
    assert on_demand["verdict"] == "buy above"
    assert on_demand["utilisation"] == pytest.approx(fixed / (rent - power), rel=1e-4)
    tera.ok(*words, "--plot", tmp_path / "curve.svg")
    assert (tmp_path / "curve.svg").read_text().startswith("<svg")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--gpus", "2"], "A plan needs a MODEL, `--hours` or"),
        (["--hours", "5", "--hours-per-month", "5"], "A plan needs a MODEL, `--hours` or"),
        (["--hours", "0"], "0 hours are out of range"),
        (["--hours-per-month", "731"], "731 hours are out of range"),
        (["--hours", "5", "--deadline", "2020-01-01"], "has passed"),
        (["--hours", "5", "--deadline", "soon"], "not a deadline"),
        (["--hours", "5", "--deadline", "nanh"], "not a deadline"),
        (["--hours", "nan"], "nan hours are out of range"),
        (["--hours", "5", "--disk", "nan"], "`--disk` or `--egress` is out of range"),
        (
            ["--hours", "5", "--egress", "nan", "--egress-price", "1"],
            "`--disk` or `--egress` is out of range",
        ),
        (["--hours", "5", "--steps", "10"], "`--steps` needs a MODEL"),
        (["--hours", "5", "--lora-rank", "8"], "`--lora-rank` needs a MODEL"),
        (["--hours", "5", "--precision", "bf16"], "`--precision` needs a MODEL"),
        (["vgg16", "--batch", "8", "--steps", "nan"], "`--steps nan` is not a number"),
        (["vgg16", "--batch", "8", "--steps", "1e99"], "The amount of work is out of range"),
        (
            ["vgg16", "--batch", "8", "--epochs", "inf", "--samples", "1"],
            "The amount of work is out of range",
        ),
        (
            ["vgg16", "--batch", "8", "--steps", "5", "--network", "25"],
            "`--network` needs a MODEL and several machines",
        ),
        (
            ["vgg16", "--batch", "8", "--steps", "5", "--checkpoint", "nan"],
            "`--checkpoint nan` is out of range",
        ),
        (["--hours", "5", "--budget", "much"], "not an amount of money"),
        (["--hours", "5", "--provider", "amazzon"], "Unknown provider"),
        (["--hours", "5", "--sort", "beauty"], "Unknown order"),
    ],
)
def test_invalid_plans_get_one_sentence(tera: Tera, words: list[str], sentence: str) -> None:
    done = tera.run("plan", *words)
    assert done.code == 2
    assert sentence in done.err
    assert "Traceback" not in done.err


def test_a_budget_that_is_too_low_reports_the_difference(tera: Tera) -> None:
    job = ["plan", "vgg16", "--batch", "128", "--epochs", "90", "--samples", "1281167"]
    cheapest = answer(tera, *job, "--json")["choices"][0]["cost"]["expected_micros"] / 1e6
    done = tera.run(*job, "--budget", "3")
    assert done.code == 3
    assert f"over the budget by {cheapest - 3:.2f} USD" in done.err
    late = tera.run(*job, "--deadline", "1h")
    assert late.code == 3
    assert "misses the deadline by" in late.err


def test_no_plan_reports_the_nearest_miss(tera: Tera) -> None:
    done = tera.run("plan", "--hours", "100", "--gpus", "8", "--budget", "500", "--json")
    assert done.code == 3
    assert "The nearest miss is 8× V100-SXM2 at lambda: over the budget by 180.00 USD" in done.err
    plan = done.json
    assert plan["choices"] == []
    assert any(each["code"] == "over_budget" for each in plan["rejected"])


@pytest.mark.parametrize("form", ["markdown", "csv", "html", "json"])
def test_compare_prints_every_format(tera: Tera, form: str) -> None:
    text = tera.ok("compare", "--gpu", "V100", "--format", form).out
    assert "lambda" in text
    assert ("850000" if form == "json" else "0.850") in text


def test_a_budget_may_have_another_currency(tera: Tera) -> None:
    in_yuan = answer(tera, "plan", "--hours", "10", "--budget", "50CNY", "--json")["choices"]
    assert in_yuan
    assert max(choice["cost"]["expected_micros"] for choice in in_yuan) <= 50e6 / 7.189
    assert tera.run("plan", "--hours", "10", "--budget", "50XYZ").code == 2


def test_explain_shows_the_arithmetic(tera: Tera) -> None:
    words = ["--hours-per-month", "5", "--disk", "50", "--provider", "paperspace", "--explain"]
    output = tera.ok("plan", *words).out
    assert "Work: 2.5500 USD (5.00 h × 0.5100 USD/hour)." in output
    assert "Disk: 5.0000 USD (50 GB × 1 month" in output
    assert "Total: 7.5500 USD." in output


def test_a_cost_below_a_cent_is_not_shown_as_nothing(tera: Tera) -> None:
    plan = ["plan", "resnet18", "--batch", "8", "--steps", "10"]
    (first, *_) = answer(tera, *plan, "--json")["choices"]
    assert 0 < first["cost"]["expected_micros"] < 10_000
    row = next(line for line in tera.ok(*plan).out.splitlines() if line.lstrip().startswith("1"))
    assert f"{first['cost']['expected_micros'] / 1e6:.4f}" in row


def test_vgg16_with_batch_256_finds_the_cheapest_offer(tera: Tera) -> None:
    job = ["plan", "vgg16", "--batch", "256", "--epochs", "1", "--samples", "1281167"]
    plan = answer(tera, *job, "--mode", "monthly", "--currency", "CNY", "--json")
    fitting = [(choice["offer"]["provider"], choice["offer"]["gpu"]) for choice in plan["choices"]]
    assert fitting[0] == ("tencent", "M40-24")
    assert ("baidu", "K40") not in fitting
    assert {"does_not_fit"} <= {each["code"] for each in plan["rejected"]}


def test_steps_are_the_same_work_only_with_a_global_batch(tera: Tera) -> None:
    job = ["plan", "resnet50", "--steps", "100000", "--top", "60", "--json"]
    each, whole = answer(tera, *job, "--batch", "64"), answer(tera, *job, "--global-batch", "64")
    assert any("--global-batch" in warning for warning in each["warnings"])
    assert not any("--global-batch" in warning for warning in whole["warnings"])

    def hours(plan: Any, count: int) -> float:
        return float(
            next(
                c["hours"]["p50"]
                for c in plan["choices"]
                if (c["offer"]["gpu"], c["gpu_count"]) == ("A6000", count)
            )
        )

    assert hours(each, 4) > hours(each, 1)
    assert hours(whole, 4) < hours(whole, 1)


def test_no_plan_with_several_machines_names_the_assumed_network(tera: Tera) -> None:
    words = [
        "plan",
        "resnet50",
        "--batch",
        "64",
        "--epochs",
        "9000",
        "--samples",
        "1281167",
        "--deadline",
        "1h",
    ]
    failed = tera.run(*words, "--gpus", "2+", "--instances", "1-4")
    assert failed.code != 0
    assert "assumes 10 Gbit/s between machines" in failed.err
    assert "--network" not in tera.run(*words).err


def test_tensor_parallel_plans_fit_and_warn_that_they_are_computed(tera: Tera) -> None:
    job = ["plan", "llama-8b", "--batch", "1", "--seq", "1024", "--precision", "bf16", "--steps", "1000"]
    job += ["--mode", "on-demand", "--top", "200", "--json"]
    plan = answer(tera, *job, "--tensor-parallel", "4")
    assert plan["choices"]
    assert all(choice["gpu_count"] % 4 == 0 for choice in plan["choices"])
    assert any("with tensor parallelism is computed, not measured" in warning for warning in plan["warnings"])
    assert "tensor_parallel" in plan["rejected_counts"]
    assert tera.run(*job).code == 3  # without it, the job fits on no card
    refused = tera.run("plan", "resnet50", "--batch", "8", "--steps", "9", "--tensor-parallel", "2")
    assert (refused.code, "transformer blocks" in refused.err) == (2, True)


def test_times_on_a_generation_that_nobody_measured_are_called_rough(tera: Tera) -> None:
    job = ["plan", "resnet50", "--batch", "8", "--steps", "1000", "--json", "--gpu"]
    (said,) = (each for each in answer(tera, *job, "M40")["warnings"] if "rough" in each)
    assert said.startswith("the time on M40")
    assert "no card of this generation was tested" in said
    assert not any("rough" in each for each in answer(tera, *job, "P100")["warnings"])
    idle = answer(tera, "plan", "--hours", "5", "--gpu", "M40", "--json")
    assert not any("rough" in each for each in idle["warnings"]), "its hours are given"
