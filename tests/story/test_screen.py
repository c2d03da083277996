"""What users see at any width: the important columns, what is left out, and one sentence for each mistake."""

import re
from datetime import UTC, datetime

import pytest
from tests.story.tera import Tera

JOB = ["plan", "vgg16", "--batch", "256", "--epochs", "90", "--samples", "1281167"]


@pytest.mark.parametrize("columns", [60, 80, 100, 160])
def test_a_plan_always_shows_time_and_price(tera: Tera, columns: int) -> None:
    done = tera.ok(*JOB, "--deadline", "30d", columns=columns)
    head, first = done.out.splitlines()[:2]
    assert all(len(line) <= columns for line in done.out.splitlines())
    assert "TIME" in head
    assert "USD" in head
    assert "days" in first
    whole = tera.ok(*JOB, "--deadline", "30d", columns=300).out.splitlines()[0]
    hidden = [title for title in ("INCLUDES", "AS OF", "MODE") if title in whole and title not in head]
    assert all(title in done.err for title in hidden)
    assert ("Columns not shown" in done.err) == bool(hidden)


def test_narrow_offers_keep_the_region_longer_than_the_date(tera: Tera) -> None:
    done = tera.ok("offers", "--gpu", "V100", "--provider", "tencent", "--mode", "on-demand", columns=80)
    assert "REGION" in done.out
    assert "Columns not shown: " in done.err
    assert "AS OF" in done.err


@pytest.mark.parametrize(
    ("sort", "title"),
    [
        ("price-per-tflops", "USD/TFLOPS-hour"),
        ("price-per-gb", "USD/GB-hour"),
        ("price-per-fp64", "USD/FP64-TFLOPS-hour"),
        ("price-per-int8", "USD/INT8-TOPS-hour"),
    ],
)
def test_a_sort_shows_its_column(tera: Tera, sort: str, title: str) -> None:
    table = tera.ok("offers", "--sort", sort, "--mode", "on-demand", columns=80).out.splitlines()
    assert title in table[0]
    end = table[0].index(title) + len(title)
    shown = [
        float(line[:end].split()[-1]) for line in table[1:] if len(line) >= end and line[end - 1].isdigit()
    ]
    assert len(shown) > 5
    assert shown == sorted(shown)


def test_a_plan_sorted_by_risk_shows_the_interruptions(tera: Tera) -> None:
    done = tera.ok(*JOB, "--sort", "risk", "--deadline", "60d", columns=80)
    assert "INTERRUPTIONS" in done.out.splitlines()[0]


def test_advice_is_about_the_largest_card_that_was_tried(tera: Tera) -> None:
    none = tera.run(*JOB, "--gpu", "V100-16", "--gpu", "T4")
    assert none.code == 3
    assert "a batch of 189 or less" in none.hint


@pytest.mark.parametrize(
    ("words", "sentence", "hint"),
    [
        (["plan", "--gpus", "0", "--hours", "4"], "A plan needs at least one GPU", "--count 0"),
        (["plan", "--gpus", "0-0", "--hours", "4"], "A plan needs at least one GPU", "--count 0"),
        (["plan", "--gppus", "1"], "No such option", "`tera plan --help`"),
        (["gpus", "--jsn"], "No such option", "`tera gpus --help`"),
        (["plan", "--hours", "4", "--budget", "¥100"], "`¥` stands for several currencies", "CNY"),
        (["plan", "--hours", "4", "--budget", "100 XYZ"], "Unknown currency `XYZ`", "tera rates"),
        (["plan", "--hours", "4", "--deadline", "some day"], "is not a deadline", "friday"),
        (["plan", "--hours", "4", "--source", "nowhere"], "Unknown source `nowhere`", "tera offers sources"),
        ([*JOB[:-1], "lots"], "`--samples lots` is not a number", "1.28M"),
        (["plan", "--hours", "4", "--accumulate", "2"], "`--accumulate` needs a MODEL", "MODEL"),
        (["recommend", "mining"], "Unknown purpose `mining`", "training"),
        (["recommend", "training", "--sort", "price-per-gb"], "do not apply", "Leave them out"),
        (["recommend", "training", "--limit", "0"], "must be from 1 to 100", ""),
        (["offers", "--encodes", "vp9"], "Unknown video format `vp9`", "AV1"),
        (["offers", "--fp64-min", "9999"], "No known GPU model meets", "tera gpus"),
        (["offers", "--by", "region"], "Unknown view `region`", "type"),
        (["offers", "--by", "type", "--csv"], "cannot be combined", "--json"),
        (["estimate", "resnet50", "--batch", "8", "--cpu-cores", "-1"], "must be from 0 to 1024", ""),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_mistake_gets_one_sentence_and_a_hint(
    tera: Tera, words: list[str], sentence: str, hint: str
) -> None:
    done = tera.run(*words)
    assert done.code == 2
    assert done.out == ""
    assert sentence in done.err.splitlines()[0]
    assert hint in done.hint


def test_the_understood_deadline_is_shown(tera: Tera) -> None:
    day = f"{datetime.now(UTC).year + 1}-03-01"
    assert (
        f"Deadline: {datetime.fromisoformat(day):%a} {day} 23:59 UTC" in tera.ok(*JOB, "--deadline", day).err
    )


def test_the_json_of_a_plan_has_every_assumption_of_the_table(tera: Tera) -> None:
    words = ["plan", "--hours-per-month", "100", "--mode", "spot", "--mode", "monthly", "--top", "50"]
    table, made = tera.ok(*words).err, tera.ok(*words, "--json").json
    assumed = made["assumptions"]
    assert f"Spot: {assumed['interruptions_per_hour']:g} interruptions per hour" in table
    (cny,) = [each for each in assumed["exchange"] if each["currency"] == "CNY"]
    assert f"1 USD = {cny['micros_per_usd'] / 1e6:g} CNY ({cny['day']}: {cny['source']})" in table
    job = [*JOB, "--batch", "128", "--mode", "spot"]
    table, made = tera.ok(*job).err, tera.ok(*job, "--json").json
    assert f"Spot: {made['assumptions']['interruptions_per_hour']:g} interruptions per hour" in table
    assert made["assumptions"]["interruptions_because"] in table
    assert all(f"Note: {warning}" in table for warning in made["warnings"])
    rupees = ["plan", "--hours", "10", "--provider", "lambda", "--budget", "₹90000"]
    assert "INR" in tera.ok(*rupees).err
    assert [each["currency"] for each in tera.ok(*rupees, "--json").json["assumptions"]["exchange"]] == [
        "INR"
    ]
    dollars = tera.ok("plan", "--hours", "10", "--provider", "lambda", "--json").json
    assert dollars["assumptions"]["exchange"] == []


def test_narrow_tables_keep_the_marks_of_doubt(tera: Tera) -> None:
    words = ["--gpu", "V100", "--provider", "gcp", "--mode", "spot"]
    for columns in (40, 60, 80):
        for command in (["offers"], ["plan", "--hours", "5"]):
            line = tera.ok(*command, *words, columns=columns).out.splitlines()[1]
            assert re.search(r"\S\?  .*gcp", line)
            assert len(line) <= columns


def test_a_name_that_is_cut_keeps_its_end(tera: Tera) -> None:
    line = tera.ok("offers", "--provider", "tencent", "--mode", "monthly", "--gpu", "V100", columns=60).out
    assert (
        "GPU CVM (peak machine)"
        in tera.ok("offers", "--provider", "tencent", "--gpu", "V100", columns=200).out
    )
    assert "machine)" in line or "INSTANCE" not in line


@pytest.mark.parametrize(
    "words",
    [
        ["estimate", "resnet50", "--batch", "32", "--gpu", "MI300X"],
        ["gpus", "V100"],
        ["plan", "buy-or-rent", "--gpu", "V100", "--count", "2", "--purchase", "9000", "--years", "3"],
        ["recommend", "hpc"],
    ],
    ids=lambda words: " ".join(words[:2]),
)
def test_a_narrow_table_says_which_columns_it_leaves_out(tera: Tera, words: list[str]) -> None:
    assert "Columns not shown: " in tera.ok(*words, columns=60).err
    assert "Columns not shown: " not in tera.ok(*words, columns=300).err


def test_a_recommendation_keeps_the_column_that_ranks_it(tera: Tera) -> None:
    for columns in (40, 60, 80):
        assert "USD/FP64-TFLOPS-hour" in tera.ok("recommend", "hpc", columns=columns).out
    assert "V100-SXM2?" in tera.ok("recommend", "hpc", columns=80).out


def test_other_views_mark_guesses_and_name_exchange_rates(tera: Tera) -> None:
    buy = ["plan", "buy-or-rent", "--gpu", "P40", "--count", "2", "--purchase", "9000", "--years", "3"]
    exchange = "Exchange: 1 USD = "
    for words in (
        ["compare", "--gpu", "P40"],
        ["gpus", "P40"],
        ["offers", "--by", "type", "--gpu", "P40"],
        buy,
    ):
        assert exchange in tera.ok(*words).err, words
    assert exchange not in tera.ok("compare", "--gpu", "A6000").err
    assert "EUR" in tera.ok("offers", "--gpu", "T4", "--price-max", "5 EUR").err, "the rate of the limit"
    assert (
        "0.800? (V100-SXM2?)"
        in tera.ok("compare", "--by", "provider", "--gpu", "V100", "--provider", "gcp").out
    )
    gcp = tera.ok("compare", "--gpu", "V100", "--provider", "gcp", "--json").json
    assert "inferred:variant" in gcp[0]["modes"]["spot"]["flags"]
    assert "V100-SXM2?" in tera.ok("gpus", "V100-16").out
    rent = tera.ok(
        "plan", "buy-or-rent", "--gpu", "V100", "--count", "1", "--purchase", "9000", "--years", "3"
    )
    assert "1× V100-SXM2?" in rent.out


def test_a_machine_that_can_be_taken_back_is_never_without_risk(tera: Tera) -> None:
    words = ["--hours", "200", "--sort", "risk", "--mode", "spot", "--mode", "on-demand", "--top", "200"]
    made = tera.ok("plan", *words, "--json").json
    risks = {choice["mode"]: choice["interruptions"] for choice in made["choices"]}
    assert risks == {"on-demand": 0.0, "spot": 0.05 * 200}
    modes = [choice["mode"] for choice in made["choices"]]
    assert modes == sorted(modes), "on-demand comes before spot"
    assert any("can take back" in warning for warning in made["warnings"])
    assert all(not any(p["what"] == "interruptions" for p in c["parts"]) for c in made["choices"])
    paid = tera.ok("plan", "--hours", "200", "--mode", "on-demand", "--json").json
    assert not any("can take back" in warning for warning in paid["warnings"])


def test_a_card_that_lacks_the_precision_is_refused_with_the_reason(tera: Tera) -> None:
    words = ["resnet50", "--batch", "32", "--precision", "amp-bf16", "--gpu", "V100-16"]
    for columns in (60, 80, 200):
        told = tera.ok("estimate", *words, "--gpu", "A100", columns=columns).err
        assert "V100-SXM2, V100-PCIe: Volta does not support bf16" in told
    none = tera.run("plan", *words, "--steps", "1000")
    assert (none.code, "Volta does not support bf16" in none.hint) == (3, True)


def test_idle_time_is_told_in_plain_units(tera: Tera) -> None:
    told = tera.ok(*JOB, "--provider", "lambda", "--explain").out
    assert re.search(r"\((\d+ s|less than 1 s) paid but not used", told)
    assert "e-0" not in told


def test_numbers_of_a_comparison_are_numbers(tera: Tera) -> None:
    rows = tera.ok("compare", "--gpu", "V100", "--json").json
    oracle = next(each for each in rows if each["provider"] == "oci")
    assert oracle["modes"]["on-demand"]["price_per_gpu_micros"] == 2_950_000
    assert oracle["memory_bytes"] == 16 << 30
    aws = next(each for each in rows if each["provider"] == "aws")
    assert aws["notice"] == {"seconds": 120, "confirmed": True}
    table = tera.ok("compare", "--by", "provider").out
    assert "free (K80)" in table
    assert "not confirmed (not confirmed)" not in table


def test_a_cpu_row_says_that_it_is_computed(tera: Tera) -> None:
    words = ["estimate", "resnet50", "--batch", "32", "--gpu", "T4", "--epochs", "1", "--samples", "1M"]
    done, found = tera.ok(*words, columns=200), tera.ok(*words, "--json").json
    assert "CPU, 16 cores" in done.out
    assert "not measured" in done.out
    seconds = found["cpu"]["step_seconds"]
    assert seconds["p50"] > found["gpus"][0]["step_seconds"]["p50"]
    assert found["cpu"]["hours"]["p50"] == pytest.approx(seconds["p50"] * 1e6 / 32 / 3600)
    more = tera.ok(*words, "--json", "--cpu-cores", "64").json["cpu"]["step_seconds"]
    assert more["p50"] < seconds["p50"]
    assert tera.ok(*words, "--json", "--cpu-cores", "0").json["cpu"] is None
