"""Parsing and display of pairs, commands, names, ages and states."""

import shlex
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.cli.instance.answers import CARDS, instance

from teraflock.base.errors import BadInput
from teraflock.cli.instance.logs import news
from teraflock.cli.parse import parse_command, parse_duration_seconds, parse_pairs
from teraflock.words.instance import state_text
from teraflock.words.shape import cards_text
from teraflock.words.text import age_text, details_text, duration_text

NOW = datetime(2026, 11, 15, tzinfo=UTC)


@given(st.dictionaries(st.text(min_size=1).filter(lambda key: "=" not in key), st.text()))
def test_pairs_are_parsed(pairs: dict[str, str]) -> None:
    assert parse_pairs([f"{key}={value}" for key, value in pairs.items()], "--label") == pairs


@pytest.mark.parametrize("texts", [["a"], ["=b"], [""], ["a=1", "a=2"]])
def test_invalid_pairs_are_refused(texts: list[str]) -> None:
    with pytest.raises(BadInput, match="--label"):
        parse_pairs(texts, "--label")


@given(st.lists(st.text(), min_size=1))
def test_a_command_is_split_as_a_shell_would(words: list[str]) -> None:
    assert parse_command(shlex.join(words)) == tuple(words)


def test_unclosed_quote_is_refused() -> None:
    with pytest.raises(BadInput, match="no closing quotation"):
        parse_command("echo 'hello")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-5, "0 s"),
        (0, "0 s"),
        (119, "119 s"),
        (120, "2 min"),
        (7199, "119 min"),
        (7200, "2 h"),
        (172800, "2 d"),
    ],
)
def test_ages(seconds: int, text: str) -> None:
    assert age_text(NOW - timedelta(seconds=seconds), NOW) == text


@given(st.integers(0, 10**9))
def test_age_text_is_short_and_accurate(seconds: int) -> None:
    number, unit = age_text(NOW - timedelta(seconds=seconds), NOW).split()
    told = int(number) * {"s": 1, "min": 60, "h": 3600, "d": 86400}[unit]
    assert told <= seconds < told * 1.5 + 1


@given(st.sampled_from(["queued", "running", "stopped", "failed"]), st.none() | st.integers(0, 255))
def test_simulated_instances_are_marked_in_every_state(state: str, exit_code: int | None) -> None:
    assert state_text(instance(state=state, exit_code=exit_code, simulated=True)).endswith(" SIMULATED")
    assert "SIMULATED" not in state_text(instance(state=state, exit_code=exit_code))


def test_state_text_shows_the_operation() -> None:
    assert state_text(instance(operation="resize")) == "running (resize)"
    assert state_text(instance(state="starting", operation="launch")) == "starting"
    assert state_text(instance(state="stopped", exit_code=3)) == "stopped (exit 3)"
    assert cards_text(CARDS) == "2× V100-SXM2"


def test_details_with_spaces_are_quoted() -> None:
    assert details_text({"a": 1, "b": "x y", "c": None, "ram_bytes": 3 << 29}) == "a=1 b='x y' c=- ram=1.5GB"


@given(st.text(alphabet="ab\n", max_size=30), st.text(alphabet="cd\n", max_size=30), st.integers(0, 30))
def test_only_new_log_output_is_printed(shown: str, more: str, cut: int) -> None:
    """Also if the server no longer has the start."""
    kept = (shown + more)[min(cut, len(shown)) :]
    got = news(shown, kept)
    assert kept.endswith(got)
    assert len(got) <= max(len(more), 0) or not shown[min(cut, len(shown)) :]


@given(st.integers(1, 10**8))
def test_durations_are_parsed(seconds: int) -> None:
    assert parse_duration_seconds(duration_text(seconds), "--time-limit") == seconds


@pytest.mark.parametrize("text", ["", "2", "h", "2x", "-1h", "1.5h", "2 h", "1h 30m"])
def test_invalid_durations_are_refused(text: str) -> None:
    with pytest.raises(BadInput, match="is not a duration"):
        parse_duration_seconds(text, "--time-limit")
