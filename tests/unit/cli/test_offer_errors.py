"""Errors of `tera offers`, tested in this process because starting `tera` for each case is slow."""

from collections.abc import Callable
from pathlib import Path

import pytest

from teraflock.cli import main

RunOffers = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture
def offers(
    home: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> RunOffers:
    """Run `tera offers …`. Returns exit code, stdout and stderr."""
    monkeypatch.setenv("TERA_HOME", str(home))
    monkeypatch.setenv("COLUMNS", "100")

    def run(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr("sys.argv", ["tera", "offers", *words])
        with pytest.raises(SystemExit) as ending:
            main.run()
        out, err = capfdbinary.readouterr()
        assert isinstance(ending.value.code, int)
        return ending.value.code, out.decode(), err.decode()

    return run


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--count", "some"), "`some` is not a number of GPUs"),
        (("--count", "8-2"), "The range of GPUs `8-2` is reversed"),
        (("--count", "9" * 30), f"`{'9' * 30}` is not a number of GPUs"),
        (("--count", "2-"), "`2-` is not a number of GPUs"),
        (("--memory-min", "lots"), "`lots` is not an amount of memory"),
        (("--ram-min", "-1"), "`-1` is not an amount of memory"),
        (("--price-max", "cheap"), "`cheap` is not an amount of money"),
        (("--price-max", "-1"), "The amount `-1` is negative"),
        (("--as-of", "yesterday"), "`yesterday` is not a date"),
        (("--as-of", "2022-13"), "`2022-13` is not a date"),
        (("--vcpu-min", "-1"), "`-1` is not a number of vCPUs"),
        (("--limit", "0"), "Invalid value for `--limit`"),
        (("--limit", "9" * 30), "Invalid value for `--limit`"),
        (("--json", "--csv"), "`--json` and `--csv` cannot be combined"),
        (("--gpu", "A100", "history"), "`--gpu` must come after `history`"),
        (("--gpu", ""), "Unknown GPU ``"),
        (("--provider", ""), "Unknown provider ``"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_an_invalid_value_is_an_error(offers: RunOffers, words: tuple[str, ...], sentence: str) -> None:
    code, out, err = offers(*words)
    assert (code, out) == (2, "")
    assert err.startswith(f"error: {sentence}")


@pytest.mark.parametrize(
    ("words", "filter"),
    [
        (("--gpu", "B300"), "--gpu"),
        (("--gpu", "V100", "--region", "atlantis"), "--region"),
        (("--gpu", "V100", "--price-max", "0.01"), "--price-max"),
        (("--memory-min", "999999999TB"), "--memory-min"),
        (("--memory-total-min", "900"), "--memory-total-min"),
        (("--vcpu-min", "999999999"), "--vcpu-min"),
        (("--source", "nowhere"), "--source"),
        (("--count", "999999999"), "--count"),
        (("--gpu", "T4", "--as-of", "1999"), "--as-of"),
        (("--mode", "bid", "--provider", "aws"), "--mode"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_an_empty_result_names_its_filter(offers: RunOffers, words: tuple[str, ...], filter: str) -> None:
    code, out, err = offers(*words, "--json")
    assert (code, out) == (0, "[]\n")
    assert f"No offers match: `{filter}` removed the last" in err
