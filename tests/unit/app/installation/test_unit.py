"""The unit that systemd gets: one word stays one word, whatever is in it, and no secret is in it."""

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
def test_a_value_in_the_file_is_read_as_it_was_written(value: str) -> None:
    """A shell reads a word in double quotes as systemd does an environment file."""
    (line,) = unit.environment_text({"TERA_DATABASE": value, "TERA_KEY": "secret"}).splitlines()
    name, _, written = line.partition("=")
    assert (name, shlex.split(_as_shlex(written))) == ("TERA_DATABASE", [value])


def _as_shlex(text: str) -> str:
    return text.replace("\\`", "`").replace("\\$", "$")  # which shlex does not take for escapes


@given(TEXTS)
def test_the_home_is_one_word_of_the_unit(folder: str) -> None:
    home = Path("/") / folder.replace("/", "_")
    (line,) = [each for each in unit.text(Places(home)).splitlines() if each.startswith("Environment=")]
    word = line.removeprefix("Environment=")
    assert shlex.split(word.replace("%%", "%")) == [f"TERA_HOME={home}"]


def test_each_home_has_a_unit_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert unit.name(Places(tmp_path / ".local/share/teraflock")) == "teraflock.service"
    names = {unit.name(Places(tmp_path / each)) for each in "ab"}
    assert len(names) == 2
    assert "teraflock.service" not in names


def test_systemd_is_asked_only_as_root_and_where_it_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert unit.is_possible(tmp_path)
    assert not unit.is_possible(tmp_path / "none")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert not unit.is_possible(tmp_path)
