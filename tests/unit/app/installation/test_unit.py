"""The systemd unit: values are quoted as one word, and it contains no secrets."""

import os
import shlex
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from teraflock.app.installation import unit
from teraflock.app.installation.places import Places

TEXTS = st.text(alphabet=st.characters(codec="ascii", exclude_categories=["Cc"]), min_size=1)


@given(TEXTS)
def test_values_in_the_environment_file_are_read_back_unchanged(value: str) -> None:
    """A shell reads a word in double quotes like systemd reads an environment file."""
    (line,) = unit.environment_text({"TERA_DATABASE": value, "TERA_KEY": "secret"}).splitlines()
    name, _, written = line.partition("=")
    assert (name, shlex.split(_as_shlex(written))) == ("TERA_DATABASE", [value])


def _as_shlex(text: str) -> str:
    return text.replace("\\`", "`").replace("\\$", "$")  # shlex does not treat these as escapes


@given(TEXTS)
def test_the_home_is_one_quoted_word_in_the_unit(folder: str) -> None:
    home = Path("/") / folder.replace("/", "_")
    (line,) = [each for each in unit.text(Places(home)).splitlines() if each.startswith("Environment=")]
    word = line.removeprefix("Environment=")
    assert shlex.split(word.replace("%%", "%")) == [f"TERA_HOME={home}"]


def test_each_home_has_its_own_unit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert unit.name(Places(tmp_path / ".local/share/teraflock")) == "teraflock.service"
    names = {unit.name(Places(tmp_path / each)) for each in "ab"}
    assert len(names) == 2
    assert "teraflock.service" not in names


def test_systemd_is_used_only_as_root_and_if_it_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert unit.is_possible(tmp_path)
    assert not unit.is_possible(tmp_path / "none")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert not unit.is_possible(tmp_path)
