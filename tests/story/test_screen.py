"""What users see at any width: the important columns, what is left out, and one sentence for each mistake."""

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
    assert (
        f"Spot: {assumed['interruptions_per_hour']:g} interruptions per hour" not in table
    )  # hours are given
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


def test_every_number_of_a_table_equals_the_json(tera: Tera) -> None:
    words = ["plan", "--hours", "10", "--top", "40"]
    lines = tera.ok(*words, columns=300).out.splitlines()
    choices = tera.ok(*words, "--json").json["choices"]
    at = lines[0].index("USD") + len("USD")
    assert [line[:at].split()[-1].rstrip("?+") for line in lines[1:]] == [
        f"{choice['cost']['expected_micros'] / 1e6:,.2f}" for choice in choices
    ]


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
