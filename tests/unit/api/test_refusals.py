"""The log lines about refusals are bounded, and each refusal is counted in one of them."""

import logging
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from teraflock.api.asked import TEXT_CHARACTERS_MAX, safe
from teraflock.api.refusals import SOURCES_MAX, SOURCES_OF_GROUP_MAX, WINDOW_SECONDS, Refusals

COUNTED = re.compile(r"… (\d+) more")


class Lines(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(record.getMessage())


class Seconds:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def written() -> tuple[logging.Logger, Lines]:
    log, lines = logging.Logger("test", logging.INFO), Lines()
    log.addHandler(lines)
    return log, lines


@given(
    st.lists(st.tuples(st.integers(0, 60), st.integers(0, 8), st.floats(0, WINDOW_SECONDS / 4)), max_size=200)
)
def test_every_refusal_is_logged_in_few_lines(notes: list[tuple[int, int, float]]) -> None:
    log, lines = written()
    seconds = Seconds()
    refusals = Refusals(seconds, log)
    for source, group, pause in notes:
        seconds.now += pause
        refusals.note(f"s{source}", f"source {source}", group=f"g{group}")
    refusals.sum_up(at_once=True)
    counted = sum(int(found[1]) for text in lines.texts if (found := COUNTED.match(text)))
    whole = sum(not COUNTED.match(text) for text in lines.texts)
    assert counted + whole == len(notes)
    windows = int(seconds.now / WINDOW_SECONDS) + 2
    assert len(lines.texts) <= windows * (2 * SOURCES_MAX + 1)


def test_one_group_cannot_use_the_lines_of_others() -> None:
    log, lines = written()
    refusals = Refusals(Seconds(), log)
    for number in range(1000):
        refusals.note(f"key_{number}", f"key {number}", group="org_1")
    refusals.note("key_x", "another tenant", group="org_2")
    assert len(lines.texts) == SOURCES_OF_GROUP_MAX + 1
    assert lines.texts[-1] == "another tenant"


def test_flood_is_summed_up_after_its_window() -> None:
    log, lines = written()
    seconds = Seconds()
    refusals = Refusals(seconds, log)
    for _ in range(813):
        refusals.note("key_1", "429 too_many: GET /v1/instances")
    assert lines.texts == ["429 too_many: GET /v1/instances"]
    refusals.sum_up()
    assert len(lines.texts) == 1
    seconds.now += WINDOW_SECONDS
    refusals.sum_up()
    assert lines.texts[1:] == ["… 812 more in 10 s: 429 too_many: GET /v1/instances"]


def test_error_logs_its_traceback_once(caplog: pytest.LogCaptureFixture) -> None:
    refusals = Refusals(Seconds(), logging.getLogger("test.faults"))
    for _ in range(3):
        refusals.note("key_1", "failed", level=logging.ERROR, error=ValueError("why"))
    assert caplog.text.count("ValueError: why") == 1


@given(st.text(max_size=400))
def test_client_text_is_logged_on_one_line_without_keys(text: str) -> None:
    secret = "tera_m7h44bpxdhbxa2qk_" + "9" * 64
    shown = safe(f"{text[:60]}{secret}{text}")
    assert shown.isprintable()
    assert len(shown) <= TEXT_CHARACTERS_MAX
    assert "9" * 10 not in shown or "9" * 10 in text
