"""A wait ends when the work is done, shows progress, and has a time limit."""

from collections.abc import Iterator, Sequence

import pytest
from tests.unit.cli.instance.answers import instance

from teraflock.base.errors import Unavailable
from teraflock.cli.instance.lifecycle import has_reached
from teraflock.cli.waiting import (
    AWAY_SECONDS_MAX,
    PAUSE_SECONDS_MAX,
    how_far,
    is_at_rest,
    wait_for,
)
from teraflock.client.instance import TookTooLong
from teraflock.wire.instance import InstanceAnswer


@pytest.fixture(autouse=True)
def naps(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Sleeping only moves the clock."""
    slept: list[float] = []
    monkeypatch.setattr("teraflock.cli.waiting.time.sleep", slept.append)
    monkeypatch.setattr("teraflock.cli.waiting.time.monotonic", lambda: sum(slept))
    return slept


def seen_after(*looks: Sequence[InstanceAnswer]) -> Iterator[Sequence[InstanceAnswer]]:
    yield from looks
    while True:
        yield looks[-1]


def test_wait_ends_when_all_instances_are_ready(naps: list[float]) -> None:
    on_its_way, there = instance(state="starting", operation="launch"), instance()
    looks = seen_after([on_its_way, on_its_way], [there, on_its_way], [there, there])
    assert wait_for(lambda: next(looks), lambda each: has_reached(each, "running"), seconds_max=60) == [
        there,
        there,
    ]
    assert len(naps) == 2


def test_failed_instance_ends_the_wait() -> None:
    failed = instance(state="failed", problem="the image does not boot")
    assert wait_for(lambda: [failed], lambda each: has_reached(each, "running"), seconds_max=60) == [failed]


def test_running_instance_with_an_operation_is_not_done() -> None:
    busy = instance(operation="restart")
    with pytest.raises(TookTooLong, match="web: running, restart") as late:
        wait_for(lambda: [busy], lambda each: has_reached(each, "running"), seconds_max=5)
    assert "The server continues" in late.value.hint


def test_polling_slows_down(naps: list[float]) -> None:
    with pytest.raises(TookTooLong):
        wait_for(lambda: [instance(state="queued")], lambda each: False, seconds_max=60)
    assert naps == sorted(naps)
    assert naps[0] <= 0.1
    assert naps[-1] <= 0.5


@pytest.mark.parametrize(
    ("changes", "rests"),
    [
        ({}, False),
        ({"operation": "resize"}, False),
        ({"state": "stopped"}, False),
        ({"state": "stopped", "wanted": "stopped"}, True),
        ({"state": "failed"}, True),
        ({"state": "queued"}, False),
        ({"state": "gone", "wanted": "gone"}, True),
    ],
)
def test_is_at_rest(changes: dict[str, str], rests: bool) -> None:
    assert is_at_rest(instance(**changes)) is rests


def test_progress_names_the_first_instance_and_counts_the_others() -> None:
    waits = instance(state="queued", problem="no host has room")
    assert how_far([waits, waits, waits]) == "web: queued (no host has room); and 2 more"
    assert (
        how_far([instance(state="starting", operation="launch", step="create")])
        == "web: starting, launch, create"
    )


@pytest.mark.parametrize("silences", [1, 5, 20])
def test_wait_survives_a_server_restart(silences: int) -> None:
    left = [Unavailable("The server cannot be reached")] * silences

    def look() -> Sequence[InstanceAnswer]:
        if left:
            raise left.pop()
        return [instance()]

    assert wait_for(look, lambda each: has_reached(each, "running"), seconds_max=600) == [instance()]


def test_wait_fails_if_the_server_stays_unreachable(naps: list[float]) -> None:
    def look() -> Sequence[InstanceAnswer]:
        raise Unavailable("The server cannot be reached")

    with pytest.raises(Unavailable, match="cannot be reached"):
        wait_for(look, lambda each: False, seconds_max=600)
    assert sum(naps) <= AWAY_SECONDS_MAX + PAUSE_SECONDS_MAX


def test_ctrl_c_says_that_the_server_continues(capsys: pytest.CaptureFixture[str]) -> None:
    def look() -> Sequence[InstanceAnswer]:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        wait_for(look, lambda each: False, seconds_max=600)
    assert "The server continues" in capsys.readouterr().err
