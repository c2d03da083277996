"""Refreshing a catalog from a loopback server: only if it changed, and the old one stays after a failure."""

import hashlib
from pathlib import Path

import pytest
from tests.story.tera import Tera
from tests.unit.offer.catalogs import machine, own, skypilot
from tests.unit.offer.test_fetch import tarred
from tests.unit.offer.web import Web, body, chunked, cut_short, status

DATE = "Sat, 22 Aug 2026 10:00:00 GMT"


def prices(folder: Path, *figures: str) -> bytes:
    rows = [{"provider": "some cloud", "instance_type": f"box{i}", "price": p} for i, p in enumerate(figures)]
    return own(folder / "prices.csv", rows).read_bytes()


def left_in(home: Path) -> list[str]:
    return sorted(path.name for path in home.iterdir())


def dollars(tera: Tera) -> list[float]:
    return [offer["price_usd_per_hour"] for offer in tera.offers("--source", "web")]


def test_the_url_is_stored_and_unchanged_catalogs_are_skipped(tera: Tera, web: Web, tmp_path: Path) -> None:
    web.pages["/prices.csv"] = body(prices(tmp_path, "1", "2"), ETag='"one"', Last_Modified=DATE)
    [report] = tera.ok("offers", "refresh", "web", "--url", web.at("/prices.csv"), "--json").json
    assert (report["as_of"], report["offers_taken"]) == ("2026-08-22", 2)
    assert dollars(tera) == [1, 2]

    unchanged = tera.ok("offers", "refresh")
    assert "web: unchanged since" in unchanged.err
    assert web.asked[-1][1]["If-None-Match"] == '"one"'

    content = prices(tmp_path, "1", "3")
    web.pages["/prices.csv"] = body(content, ETag='"two"', Last_Modified=DATE)
    web.pages["/prices.csv.sha256"] = body(hashlib.sha256(content).hexdigest().encode())
    changed = tera.ok("offers", "refresh", "web")
    assert "1  changed prices" in changed.out
    assert dollars(tera) == [1, 3]

    asked = len(web.asked)
    tera.ok("offers", "refresh", "web", "--force")
    assert "If-None-Match" not in web.asked[asked + 1][1]
    assert left_in(tera.home) == ["tera.db"]


def test_an_archive_of_a_catalog(tera: Tera, web: Web, tmp_path: Path) -> None:
    skypilot(tmp_path, "lambda", [machine("A10", 1, 24_576, price="0.75")])
    content = (tmp_path / "lambda" / "vms.csv").read_bytes()
    files = {"c/v7/aws/vms.csv": b"old", "c/v8/lambda/vms.csv": content}
    web.pages["/catalog.tar.gz"] = body(tarred(files, "gz"))
    tera.ok("offers", "refresh", "skypilot", "--url", web.at("/catalog.tar.gz"))
    (offer,) = tera.offers("--source", "skypilot")
    assert (offer["provider"], offer["gpu"]) == ("lambda", "A10")


def test_one_file_of_a_catalog_keeps_its_cloud(tera: Tera, web: Web, tmp_path: Path) -> None:
    skypilot(tmp_path, "lambda", [machine("A10", 1, 24_576, price="0.75")])
    web.pages["/v8/lambda/vms.csv"] = body((tmp_path / "lambda" / "vms.csv").read_bytes())
    tera.ok("offers", "refresh", "skypilot", "--url", web.at("/v8/lambda/vms.csv"))
    assert [offer["provider"] for offer in tera.offers("--source", "skypilot")] == ["lambda"]


def test_the_old_catalog_stays_after_any_failure(tera: Tera, web: Web, tmp_path: Path) -> None:
    good, new = prices(tmp_path, "1", "2"), prices(tmp_path, "7", "8")
    web.pages["/prices.csv"] = body(good)
    tera.ok("offers", "refresh", "web", "--url", web.at("/prices.csv"))
    for answer, sentence in (
        (cut_short(new[: len(new) // 2], len(new)), "was interrupted"),
        (chunked(new[: len(new) // 2], whole=False), "was interrupted"),
        (body(new[:-30]), "prices.csv`, line 3: expected 22 columns"),
        (body(new.splitlines()[0]), "/prices.csv` can be imported"),
        (body(b"<html>Sorry</html>"), "has no column"),
        (status(500), "answered 500"),
        (web.silent, "did not answer in time"),
    ):
        web.pages["/prices.csv"] = answer
        done = tera.run("offers", "refresh", "web", "--timeout", "0.2")
        assert (done.code, done.out) == (1, "")
        assert sentence in done.err
        assert left_in(tera.home) == ["tera.db"]
    web.pages["/prices.csv"] = body(new)
    wrong = tera.run("offers", "refresh", "web", "--sha256", "0" * 64)
    assert wrong.code == 1
    assert "does not match" in wrong.err
    assert dollars(tera) == [1, 2]


def test_a_future_date_from_the_server_does_not_block_later_imports(
    tera: Tera, web: Web, tmp_path: Path
) -> None:
    web.pages["/prices.csv"] = body(prices(tmp_path, "1"), Last_Modified="Fri, 01 Jan 2100 10:00:00 GMT")
    tera.ok("offers", "refresh", "web", "--url", web.at("/prices.csv"))
    (offer,) = tera.offers("--source", "web")
    assert offer["as_of"] < "2100"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ((), "No source has a URL yet"),
        (("--url", "http://127.0.0.1/x.csv"), "`--url` needs the name of a source"),
        (("shipped",), "The source name `shipped` is reserved"),
        (("web", "--url", "prices.csv"), "`prices.csv` is not a valid URL"),
        (("web", "--url", "http://[::1"), "`http://[::1` is not a valid URL"),
        (("web", "--url", "http://127.0.0.1/größe.csv"), "is not a valid URL"),
        (("web", "--url", "http://127.0.0.1/x.csv", "--timeout", "0"), "Invalid value for `--timeout`"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_invalid_refreshes_get_an_error(tera: Tera, words: tuple[str, ...], sentence: str) -> None:
    done = tera.run("offers", "refresh", *words)
    assert done.code == 2
    assert sentence in done.err
    assert done.hint


def test_refreshing_a_source_without_a_url_is_an_error(tera: Tera, tmp_path: Path) -> None:
    prices(tmp_path, "1")
    tera.ok("offers", "import", "mine", tmp_path / "prices.csv")
    done = tera.run("offers", "refresh", "mine")
    assert done.code == 2
    assert "has no URL yet" in done.err


def test_one_unreachable_source_does_not_stop_the_others(tera: Tera, web: Web, tmp_path: Path) -> None:
    for name in ("away", "here"):
        web.pages[f"/{name}.csv"] = body(prices(tmp_path, "1"), ETag='"one"')
        tera.ok("offers", "refresh", name, "--url", web.at(f"/{name}.csv"))
    del web.pages["/away.csv"]
    web.pages["/here.csv"] = body(prices(tmp_path, "1", "2"), ETag='"two"')
    done = tera.run("offers", "refresh", "--json")
    assert done.code == 1
    assert "404" in done.err
    assert [report["source"] for report in done.json] == ["here"]
    assert len(tera.offers("--source", "away")) == 1
    assert len(tera.offers("--source", "here")) == 2
