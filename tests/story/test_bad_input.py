"""Unknown names and empty results: messages, streams and exit codes."""

import pytest
from tests.story.tera import Tera


@pytest.mark.parametrize(
    ("words", "sentence", "near"),
    [
        (("offers", "--gpu", "V1000"), "Unknown GPU `V1000`", "`V100`"),
        (("gpus", "RTX 5091"), "Unknown GPU `RTX 5091`", "`RTX5090`"),
        (("offers", "history", "--gpu", "A1000"), "Unknown GPU `A1000`", "`A100`"),
        (("offers", "--provider", "amazn"), "Unknown provider `amazn`", "`Amazon`"),
        (("providers", "tencet"), "Unknown provider `tencet`", "`tencent`"),
        (("offers", "--currency", "CNX"), "Unknown currency `CNX`", "`CNY`"),
        (("offers", "--mode", "spott"), "Unknown mode `spott`", "`spot`"),
        (("offers", "--sort", "prise"), "Unknown order `prise`", "`price`"),
        (("offers", "--per", "moth"), "Unknown period `moth`", "`month`"),
        (("ofers",), "Unknown command `ofers`", "`offers`"),
        (("offers", "imprt"), "Unknown command `imprt`", "`import`"),
        (("offers", "--gpus", "A100"), "No such option `--gpus`", "tera offers --help"),
        (("rates", "imprt"), "No such command `imprt`", "tera rates --help"),
        (("offers", "refresh", "shiped"), "Unknown source `shiped`", "`shipped`"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_an_unknown_name_gets_suggestions(
    tera: Tera, words: tuple[str, ...], sentence: str, near: str
) -> None:
    done = tera.run(*words)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(f"error: {sentence}")
    assert near in done.hint


def test_an_invalid_value_is_an_error(tera: Tera) -> None:
    done = tera.run("offers", "--count", "8-2")
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("error: The range of GPUs `8-2` is reversed")
    assert done.hint == "Did you mean `2-8`?"


def test_an_empty_result_names_its_filter(tera: Tera) -> None:
    done = tera.ok("offers", "--gpu", "V100", "--region", "atlantis", "--json")
    assert done.json == []
    assert "No offers match: `--region` removed the last 38" in done.err


def test_an_empty_result_is_an_empty_table(tera: Tera) -> None:
    table = tera.ok("offers", "--gpu", "B300")
    assert len(table.out.splitlines()) == 1
    assert "USD/hour" in table.out
    assert "No offers match: `--gpu` removed the last 137" in table.err
    assert len(tera.ok("offers", "--gpu", "B300", "--csv").out.splitlines()) == 1
    assert tera.ok("offers", "history", "--gpu", "B300", "--json").json == []
    assert "No prices match for B300" in tera.ok("offers", "history", "--gpu", "B300").err


def test_a_high_price_limit_removes_nothing(tera: Tera) -> None:
    priced = [offer["id"] for offer in tera.offers("--all") if offer["price_micros"] is not None]
    assert [offer["id"] for offer in tera.offers("--price-max", "9" * 40, "--all")] == priced


def test_without_a_command_the_help_is_shown(tera: Tera) -> None:
    done = tera.run()
    assert done.code == 2
    assert "Usage: tera" in done.out
    assert "Usage: tera" in tera.ok("--help").out
    assert tera.ok("--version").out.startswith("teraflock ")
    for words in (
        ("offers",),
        ("gpus",),
        ("providers",),
        ("rates",),
        ("offers", "import"),
        ("offers", "refresh"),
    ):
        assert "Examples:" in tera.ok(*words, "--help").out or words == ("rates",)


def test_a_terminal_without_unicode_gets_output(tera: Tera) -> None:
    for words in (("offers", "--gpu", "V100"), ("offers", "history", "--gpu", "V100"), ("providers",)):
        done = tera.run(*words, more={"PYTHONIOENCODING": "latin-1", "PYTHONUTF8": "0"})
        assert done.code == 0
        assert len(done.out.splitlines()) > 2
