"""Bad input for `tera offers`, in this process because separate processes would take long."""

from collections.abc import Callable
from pathlib import Path

import pytest

from teraflock.cli import main

Said = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture
def said(home: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]) -> Said:
    """Runs `tera offers …`: exit code, stdout, stderr."""
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
        (("--count", "some"), "`some` is no number of GPUs"),
        (("--count", "8-2"), "No number of GPUs lies between 8 and 2"),
        (("--count", "9" * 30), f"`{'9' * 30}` is no number of GPUs"),
        (("--count", "2-"), "`2-` is no number of GPUs"),
        (("--memory-min", "lots"), "`lots` is no amount of memory"),
        (("--ram-min", "-1"), "`-1` is no amount of memory"),
        (("--price-max", "cheap"), "`cheap` is no amount of money"),
        (("--price-max", "-1"), "No price is at most `-1`"),
        (("--as-of", "yesterday"), "`yesterday` is no date"),
        (("--as-of", "2022-13"), "`2022-13` is no date"),
        (("--vcpu-min", "-1"), "`-1` is not a number of vCPUs"),
        (("--limit", "0"), "Invalid value for '--limit'"),
        (("--limit", "9" * 30), "Invalid value for '--limit'"),
        (("--json", "--csv"), "`--json` and `--csv` cannot be had at once"),
        (("--gpu", "A100", "history"), "`--gpu` stands before `history`"),
        (("--gpu", ""), "No GPU is known by the name ``"),
        (("--provider", ""), "No provider is known by the name ``"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_contradictory_input_is_refused(said: Said, words: tuple[str, ...], sentence: str) -> None:
    code, out, err = said(*words)
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
def test_filter_without_results_is_named(said: Said, words: tuple[str, ...], filter: str) -> None:
    code, out, err = said(*words, "--json")
    assert (code, out) == (0, "[]\n")
    assert f"No offer is left: `{filter}` removed the last" in err
