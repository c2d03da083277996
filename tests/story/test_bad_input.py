"""Unknown names and filters without results: the message, its stream, and the exit code."""

import pytest
from tests.story.tera import Tera


@pytest.mark.parametrize(
    ("words", "sentence", "near"),
    [
        (("offers", "--gpu", "V1000"), "No GPU is known by the name `V1000`", "`V100`"),
        (("gpus", "RTX 5091"), "No GPU is known by the name `RTX 5091`", "`RTX5090`"),
        (("offers", "history", "--gpu", "A1000"), "No GPU is known by the name `A1000`", "`A100`"),
        (("offers", "--provider", "amazn"), "No provider is known by the name `amazn`", "`Amazon`"),
        (("providers", "tencet"), "No provider is known by the name `tencet`", "`tencent`"),
        (("offers", "--currency", "CNX"), "No currency is known by the name `CNX`", "`CNY`"),
        (("offers", "--mode", "spott"), "No mode is known by the name `spott`", "`spot`"),
        (("offers", "--sort", "prise"), "No order is known by the name `prise`", "`price`"),
        (("offers", "--per", "moth"), "No period is known by the name `moth`", "`month`"),
        (("ofers",), "No command is known by the name `ofers`", "`offers`"),
        (("offers", "imprt"), "No command is known by the name `imprt`", "`import`"),
        (("offers", "--gpus", "A100"), "No such option '--gpus'", "tera offers --help"),
        (("rates", "imprt"), "No such command 'imprt'", "tera rates --help"),
        (("offers", "refresh", "shiped"), "No source is known by the name `shiped`", "`shipped`"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_unknown_name_gets_suggestions(tera: Tera, words: tuple[str, ...], sentence: str, near: str) -> None:
    done = tera.run(*words)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(f"error: {sentence}")
    assert near in done.hint


def test_contradictory_input_is_refused(tera: Tera) -> None:
    done = tera.run("offers", "--count", "8-2")
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("error: No number of GPUs lies between 8 and 2")
    assert done.hint == "Did you mean `2-8`?"


def test_filter_without_results_is_named(tera: Tera) -> None:
    done = tera.ok("offers", "--gpu", "V100", "--region", "atlantis", "--json")
    assert done.json == []
    assert "No offer is left: `--region` removed the last 35" in done.err


def test_no_results_are_an_empty_table(tera: Tera) -> None:
    table = tera.ok("offers", "--gpu", "B300")
    assert len(table.out.splitlines()) == 1
    assert "USD/hour" in table.out
    assert "No offer is left: `--gpu` removed the last 128" in table.err
    assert len(tera.ok("offers", "--gpu", "B300", "--csv").out.splitlines()) == 1
    assert tera.ok("offers", "history", "--gpu", "B300", "--json").json == []
    assert "No price is known for B300" in tera.ok("offers", "history", "--gpu", "B300").err


def test_price_limit_above_all_prices_keeps_everything(tera: Tera) -> None:
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


def test_terminal_without_unicode_still_gets_output(tera: Tera) -> None:
    for words in (("offers", "--gpu", "V100"), ("offers", "history", "--gpu", "V100"), ("providers",)):
        done = tera.run(*words, more={"PYTHONIOENCODING": "latin-1", "PYTHONUTF8": "0"})
        assert done.code == 0
        assert len(done.out.splitlines()) > 2
