"""Every number in a table equals the one in the JSON of the same question."""

import csv
import re
from html.parser import HTMLParser
from io import StringIO
from typing import Any

import pytest
from tests.story.tables import cells, number, rounded
from tests.story.tera import Tera

from teraflock.base.quantities import memory_text, significant_text
from teraflock.offer.model import SORTS
from teraflock.plan.buy_or_rent import CURVE_STEPS
from teraflock.plan.rules import hours_text

JOB = ["vgg16", "--batch", "256", "--epochs", "90", "--samples", "1281167"]


@pytest.mark.parametrize(
    "words",
    [
        ["--hours", "10", "--top", "60"],
        ["--hours-per-month", "10", "--disk", "50", "--egress", "20", "--currency", "EUR", "--top", "60"],
        ["--hours", "200", "--sort", "risk", "--mode", "spot", "--mode", "on-demand", "--top", "60"],
        [*JOB, "--mode", "spot", "--mode", "monthly", "--top", "60"],
        [*JOB, "--instances", "1-3", "--sort", "time", "--top", "60"],
    ],
    ids=lambda words: " ".join(words),
)
def test_every_number_of_a_plan_equals_the_json(tera: Tera, words: list[str]) -> None:
    rows = cells(tera.ok("plan", *words, columns=400).out)
    choices = tera.ok("plan", *words, "--json").json["choices"]
    assert len(rows) == len(choices) > 3
    price = next(title for title in rows[0] if title.startswith(("USD", "EUR")))
    for row, choice in zip(rows, choices, strict=True):
        assert number(row[price]) == rounded(choice["cost"]["expected_micros"], 2)
        assert ("+" in row[price]) == bool(choice["uncounted"])
        assert row["TIME"] == hours_text(choice["hours"]["p50"])
        machines = f"{choice['instances']} × " if choice["instances"] > 1 else ""
        assert (
            row["GPUS"].rstrip("?") == f"{machines}{choice['offer']['gpu_count']}× {choice['offer']['gpu']}"
        )
        assert row.get("REGION", "") == choice["offer"]["region"]
        assert row["AS OF"] == (choice["offer"]["as_of"] or "unknown")
        parts = {part["what"]: part["micros"] for part in choice["parts"]}
        shown = dict(re.findall(r"(\w+) ([\d,]+\.\d\d)", row.get("INCLUDES", "")))
        assert {name: number(text) for name, text in shown.items()} == {
            name: rounded(micros, 2)
            for name, micros in parts.items()
            if name in ("disk", "egress") or (name != "rent" and micros >= 5000)
        }
        if "INTERRUPTIONS" in row:
            assert number(row["INTERRUPTIONS"]) == round(choice["interruptions"], 1)


@pytest.mark.parametrize("sort", [*SORTS])
@pytest.mark.parametrize("per", ["hour", "month"])
def test_every_number_of_an_offer_equals_the_json(tera: Tera, sort: str, per: str) -> None:
    words = [
        "offers",
        "--sort",
        sort,
        "--per",
        per,
        "--currency",
        "CNY",
        "--limit",
        "40",
        "--mode",
        "on-demand",
    ]
    rows, offers = cells(tera.ok(*words, columns=400).out), tera.offers(*words[1:])
    by_place = {
        (
            o["provider"],
            o["gpu"],
            o["gpu_count"],
            o["instance_type"],
            o["vcpus"],
            o["ram_bytes"],
            o["price_micros"],
        ): o
        for o in offers
    }
    assert len(rows) == len(by_place), "offers that differ share no line"
    assert len(rows) > 10 or sort == "price-per-fp8", "only shipped offers of cards with FP8 are missing"
    digits = {"hour": 3, "month": 2}[per]
    for row, offer in zip(rows, by_place.values(), strict=True):
        price, each = (offer[name] for name in ("price_micros", "price_per_gpu_micros"))
        assert number(row[f"CNY/{per}"]) == rounded(price, digits)
        assert number(row[f"CNY/GPU-{per}"]) == rounded(each, digits)
        assert number(row["VCPUS"]) == offer["vcpus"]
        if offer["ram_bytes"]:
            assert row["RAM"].rstrip("?") == memory_text(offer["ram_bytes"])


COMPARISONS = [
    ["--gpu", "V100", "--gpu", "P40"],
    ["--memory-min", "16", "--currency", "CNY"],
    ["--by", "provider", "--currency", "EUR"],
    ["--by", "provider", "--mode", "spot", "--mode", "on-demand", "--gpu", "V100"],
]


@pytest.mark.parametrize("form", ["markdown", "csv", "html"])
@pytest.mark.parametrize("words", COMPARISONS, ids=" ".join)
def test_every_number_of_a_comparison_equals_the_json(tera: Tera, words: list[str], form: str) -> None:
    compared = tera.ok("compare", *words, "--json").json
    rows = READERS[form](tera.ok("compare", *words, "--format", form).out)
    assert len(rows) == len(compared) > 3
    for row, shape in zip(rows, compared, strict=True):
        assert row["provider"] == shape["provider"]
        if "memory" in row:
            assert row["memory"] == (f"{shape['memory_bytes'] >> 30} GB" if shape["memory_bytes"] else "")
        else:
            assert row["regions"] == str(shape["regions"] or "unknown")
        titles = [title for title in row if title.endswith(f", {shape['currency']}/GPU-hour")]
        assert {title.split(",")[0].removesuffix(" mode") for title in titles if row[title]} == set(
            shape["modes"]
        )
        for mode, price in shape["modes"].items():
            title = "unknown mode" if mode == "unknown" else mode
            shown = row[f"{title}, {shape['currency']}/GPU-hour"].partition(" (")[0]
            micros = price["price_per_gpu_micros"]
            without = "free" if mode == "free" else "unknown"
            if mode == "free" or micros is None:
                assert shown.rstrip("?") == without
            else:
                assert number(shown) == rounded(micros, 3)
        days = sorted(each["as_of"] for each in shape["modes"].values() if each["as_of"])
        assert row["prices of"].split(" to ")[0] == (days[0] if days else "unknown")


def read_markdown(text: str) -> list[dict[str, str]]:
    head, _, *rows = ([cell.strip() for cell in line[1:-1].split(" | ")] for line in text.splitlines())
    return [dict(zip(head, row, strict=True)) for row in rows]


def read_csv(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(StringIO(text)))


def read_html(text: str) -> list[dict[str, str]]:
    class Cells(HTMLParser):
        def __init__(self) -> None:
            super().__init__()
            self.rows: list[list[str]] = []

        def handle_starttag(self, tag: str, attrs: list[Any]) -> None:
            if tag == "tr":
                self.rows.append([])
            elif tag in ("td", "th"):
                self.rows[-1].append("")

        def handle_data(self, data: str) -> None:
            if self.rows and self.rows[-1]:
                self.rows[-1][-1] += data

    parser = Cells()
    parser.feed(text.replace("\n", ""))
    head, *rows = parser.rows
    return [dict(zip(head, row, strict=True)) for row in rows]


READERS = {"markdown": read_markdown, "csv": read_csv, "html": read_html}


@pytest.mark.parametrize("purpose", ["training", "inference", "hpc", "rendering", "video"])
def test_every_number_of_a_recommendation_equals_the_json(tera: Tera, purpose: str) -> None:
    words = ["recommend", purpose, "--limit", "20", "--currency", "CNY"]
    rows, shape = cells(tera.ok(*words, columns=400).out), tera.ok(*words, "--json").json
    assert len(rows) == len(shape["cards"]) > 3
    for row, card in zip(rows, shape["cards"], strict=True):
        offer = card["offer"]
        assert (row["GPU"].rstrip("?"), row["FIT"], row["WHY"]) == (card["gpu"], card["fit"], card["reason"])
        assert number(row["CNY/GPU-hour"]) == rounded(offer["price_per_gpu_micros"], 3)
        assert row["AS OF"] == (offer["as_of"] or "unknown")
        for title in row:
            if title.startswith("CNY/") and title != "CNY/GPU-hour":
                assert row[title] == significant_text(card["price_per_unit"])


def test_every_number_of_the_ladder_equals_the_json(tera: Tera) -> None:
    words = ["recommend", "learning", "--currency", "EUR"]
    rows, shape = cells(tera.ok(*words, columns=400).out), tera.ok(*words, "--json").json
    offers = [offer for step in shape["steps"] for offer in step["offers"] or [None]]
    assert len(rows) == len(offers) > 3
    for row, offer in zip(rows, offers, strict=True):
        if offer:
            assert number(row["EUR/hour"]) == rounded(offer["price_micros"] or 0, 3)
            assert row["GPUS"].startswith(f"{offer['gpu_count'] or 1}× ")


@pytest.mark.parametrize(
    "words",
    [
        ["--gpu", "V100", "--count", "2", "--purchase", "16000", "--years", "3", "--watts", "900"],
        ["--gpu", "P40", "--count", "1", "--purchase", "500", "--years", "5", "--currency", "CNY"],
        ["--gpu", "V100", "--count", "8", "--purchase", "90000", "--years", "2", "--power", "0.3"],
    ],
    ids=" ".join,
)
def test_every_number_of_buy_or_rent_equals_the_json(tera: Tera, words: list[str]) -> None:
    table = tera.ok("plan", "buy-or-rent", *words, columns=400).out
    shape = tera.ok("plan", "buy-or-rent", *words, "--json").json
    money = shape["server"]["currency"]
    upkeep, _, month = table.partition("\n\n")
    for what, key, digits in (
        ("capital, less resale", "capital_micros", 2),
        ("hosting", "hosting_micros", 2),
        ("staff", "staff_micros", 2),
        ("power", "power_micros_per_hour", 4),
    ):
        shown = re.search(rf"{what} +([\d,.]+) {money}", upkeep)
        assert shown
        assert number(shown[1]) == rounded(shape["upkeep"][key], digits)
    rows = cells(month)
    assert len(rows) == len(shape["curves"]) > 1
    for row, curve in zip(rows, shape["curves"], strict=True):
        assert number(row[f"{money} AT 50 %"]) == rounded(curve["micros"][CURVE_STEPS // 2], 2)
        assert number(row[f"{money} AT 100 %"]) == rounded(curve["micros"][-1], 2)
    for row, even in zip(rows[1:], shape["break_even"], strict=True):
        at = "" if even["utilisation"] is None else f" {even['utilisation']:.0%}"
        assert row["VERDICT"] == even["verdict"] + at
        rent = even["rent"]
        assert row["MACHINES"].rstrip("?") == f"{rent['machines']} × {rent['gpu_count']}× {rent['gpu']}"
