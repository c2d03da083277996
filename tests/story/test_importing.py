"""Importing catalogs: import, replace, look up, and history."""

import json
from pathlib import Path

import pytest
from tests.story.tera import Tera
from tests.unit.offer.catalogs import gpuhunt, machine, own, skypilot


def prices(file: Path, *figures: str) -> Path:
    return own(
        file,
        [{"provider": "our servers", "instance_type": f"box{i}", "price": p} for i, p in enumerate(figures)],
    )


def test_an_import_prints_a_report(tera: Tera, tmp_path: Path) -> None:
    rows = [
        machine("A100-80GB", 8, 655_360, price="12", InstanceType="good"),
        machine("A100", 2, 81_920, price="0.02", InstanceType="a cent"),
        machine("H100", 1, 81_920, InstanceType="uncounted", AcceleratorCount=""),
        machine("Voodoo9000", 1, 0, InstanceType="odd", GpuInfo=""),
    ]
    skypilot(tmp_path / "catalog", "vast", rows)
    done = tera.ok("offers", "import", "skypilot", tmp_path / "catalog", "--as-of", "2026-08-22")
    figures = {line.split(maxsplit=1)[1]: int(line.split()[0]) for line in done.out.splitlines()[1:]}
    assert figures == {
        "rows read; a row can have two prices": 4, "prices imported, each as an offer": 3,
        "with a price": 2, "price unknown": 0, "price refused": 1,
        "price far from that of other providers": 0,
        "rows or single prices rejected": 1, "new offers": 3, "changed prices": 0, "removed offers": 0,
    }  # fmt: skip
    assert "1: a GPU has no count (vast/vms.csv, line 4)" in done.err
    assert "1: the price is implausibly low (vast/vms.csv, line 3)" in done.err
    assert "Voodoo9000 (1)" in done.err

    (offer,) = tera.offers("--source", "skypilot", "--gpu", "A100")
    assert (offer["provider"], offer["gpu"], offer["gpu_count"]) == ("vast", "A100-SXM4-80", 8)
    assert "corrected:memory" in offer["flags"]
    assert (offer["as_of"], offer["source"]) == ("2026-08-22", "skypilot")
    listed = tera.ok("offers", "--source", "skypilot", "--gpu", "A100")
    assert "1 with an implausible price (`--all` shows them)" in listed.err
    both = tera.offers("--source", "skypilot", "--gpu", "A100", "--all")
    assert [each["standing"] for each in both] == ["priced", "refused"]
    assert "implausibly low" in both[1]["note"]


def test_the_report_as_json(tera: Tera, tmp_path: Path) -> None:
    file = gpuhunt(tmp_path / "lambdalabs.csv", [{"gpu_name": "A10", "gpu_count": 1, "price": "0.75"}])
    report = tera.ok("offers", "import", "gpuhunt", file, "--as-of", "2026-08", "--json").json
    assert (report["source"], report["as_of"], report["offers_taken"]) == ("gpuhunt", "2026-08-31", 1)
    again = tera.ok("offers", "import", "gpuhunt", file, "--as-of", "2026-08", "--json").json
    assert (again["new"], again["changed"], again["gone"]) == (0, 0, 0)


def test_prices_over_time(tera: Tera, tmp_path: Path) -> None:
    file = tmp_path / "prices.csv"
    for day, *figures in (("2026-01-01", "1", "2"), ("2026-02-01", "1", "4"), ("2026-03-01", "3")):
        tera.ok("offers", "import", "mine", prices(file, *figures), "--as-of", day)
    question = ("--gpu", "T4", "--source", "mine")
    points = tera.ok("offers", "history", *question, "--json").json
    assert [(p["day"], p["lowest_micros"], p["highest_micros"], p["offers"]) for p in points] == [
        ("2026-01-01", 1_000_000, 2_000_000, 2),
        ("2026-02-01", 4_000_000, 4_000_000, 1),
        ("2026-03-01", 3_000_000, 3_000_000, 1),
    ]
    chart = tera.ok("offers", "history", *question)
    assert chart.out.startswith("T4: USD per GPU-hour\n")
    assert [line.split()[0] for line in chart.out.splitlines()[1:]] == [
        "2026-01-01",
        "2026-02-01",
        "2026-03-01",
    ]
    assert all("●" in line and len(line) <= 100 for line in chart.out.splitlines()[1:])

    def on(day: str) -> list[float]:
        return [offer["price_usd_per_hour"] for offer in tera.offers(*question, "--as-of", day)]

    assert on("2026-01-15") == [1, 2]
    assert on("2026-02") == [1, 4]
    assert on("2026-03-01") == [3]


def test_sources_are_listed_with_their_origin(tera: Tera, tmp_path: Path) -> None:
    file = prices(tmp_path / "prices.csv", "1")
    tera.ok("offers", "import", "mine", file, "--as-of", "2026-01-01")
    sources = {source["name"]: source for source in tera.ok("offers", "sources", "--json").json}
    assert sources.keys() == {"mine", "shipped"}
    assert (sources["mine"]["as_of"], sources["mine"]["place"]) == ("2026-01-01", str(file))
    table = tera.ok("offers", "sources").out
    assert "shipped with Teraflock" in table
    assert "2026-01-01" in table


def test_older_prices_are_refused(tera: Tera, tmp_path: Path) -> None:
    file = prices(tmp_path / "prices.csv", "1")
    tera.ok("offers", "import", "mine", file, "--as-of", "2026-02-01")
    done = tera.run("offers", "import", "mine", file, "--as-of", "2026-01-01")
    assert done.code == 1
    assert "are from 2026-01-01, older than the stored ones from 2026-02-01" in done.err
    assert "--as-of" in done.hint


BROKEN = {
    "short row": (b"provider,gpu,gpu_count,mode,price,currency,per\naws,T4,1\n", "expected 7 columns, found 3"),
    "open quote": (b'provider,gpu,gpu_count,mode,price,currency,per\naws,"T4,1\n', "unexpected end of data"),
    "NUL": (b"provider,gpu,gpu_count,mode,price,currency,per\naws,T4\0,1,spot,1,USD,hour\n", "NUL"),
    "not UTF-8": (b"provider,gpu,gpu_count,mode,price,currency,per\n\xff\n", "not UTF-8 text"),
    "empty": (b"", "is empty"),
    "no such column": (b"provider,gpu\naws,T4\n", "has no column"),
    "nothing in it": (b"provider,gpu,gpu_count,mode,price,currency,per\n", "None of the 0 rows"),
}  # fmt: skip


def test_a_broken_csv_changes_nothing(owner: Tera, tmp_path: Path) -> None:
    file = tmp_path / "broken.csv"
    before = (owner.home / "tera.db").read_bytes()
    for kind, (content, sentence) in BROKEN.items():
        file.write_bytes(content)
        done = owner.run("offers", "import", "mine", file)
        assert (kind, done.code, done.out) == (kind, 1, "")
        assert sentence in done.err
    assert (owner.home / "tera.db").read_bytes() == before
    assert len(owner.offers("--source", "mine")) == 2


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (("shipped", "x.csv"), 2, "The source name `shipped` is reserved"),
        (("no/name", "x.csv"), 2, "`no/name` is not a valid source name"),
        (("mine", "nowhere.csv"), 1, "`nowhere.csv` does not exist"),
        (("mine", "/dev/null"), 1, "does not exist"),
        (("skypilot", "/"), 1, "`/` is not a SkyPilot catalog"),
        (("mine",), 2, "Missing argument `PATH`"),
        (("mine", "x.csv", "--layout", "odd"), 2, "layout"),
        (("mine", "x.csv", "--as-of", "2999"), 2, "`2999` is in the future"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_invalid_imports_get_an_error(tera: Tera, words: tuple[str, ...], code: int, sentence: str) -> None:
    done = tera.run("offers", "import", *words)
    assert done.code == code
    assert sentence in done.err


def test_a_catalog_cannot_inject_terminal_escapes(tera: Tera, tmp_path: Path) -> None:
    row = {"provider": "evil", "instance_type": "a\n\x1b[31mb\rc", "gpu": "T4", "price": "1"}
    tera.ok("offers", "import", "mine", own(tmp_path / "prices.csv", [row]))
    table = tera.ok("offers", "--source", "mine").out
    assert len(table.splitlines()) == 2
    assert not any(sign in table for sign in "\x1b\r")
    (offer,) = tera.offers("--source", "mine")
    assert offer["instance_type"] == row["instance_type"]


def test_providers_from_imports_can_be_filtered(tera: Tera, tmp_path: Path) -> None:
    tera.ok("offers", "import", "mine", prices(tmp_path / "prices.csv", "1"))
    (offer,) = tera.offers("--provider", "our-servers")
    assert offer["provider"] == "our-servers"
    assert json.dumps(offer)
