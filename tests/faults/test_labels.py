"""Changing labels: the bill uses the labels at the time of use, and its verification succeeds."""

from collections import Counter
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.faults.test_quantities import Lab

from teraflock.base.errors import BadInput, Conflict
from teraflock.bill.verify.service import verify
from teraflock.instance.orders import ShapeWish


@pytest.fixture
def lab() -> Iterator[Lab]:
    made = Lab()
    yield made
    made.installation.database.close()


def by_team(lab: Lab) -> dict[str, int]:
    bill = lab.bills.bill(lab.installation.tenant.project.id, "2026-03", "label", "team")
    return {group.name: group.micros for group in bill.groups if group.micros}


def test_each_team_pays_for_the_time_of_its_label(lab: Lab) -> None:
    lab.ask("label", "one", {"team": "red"})
    lab.installation.wait(3600)
    lab.ask("label", "one", {"team": "blue", "run": "7"})
    lab.installation.wait(7200)
    lab.ask("label", "one", {"team": None})
    lab.installation.wait(3600)
    lab.ask("stop", "one")
    lab.installation.settle()
    lab.day_over()
    lab.day_over()
    with lab.installation.database.read() as tx:
        rows = tx.all("SELECT labels, until_us - from_us FROM meter_interval WHERE gpus = 1")
    seconds: Counter[str] = Counter()
    for labels, length_us in rows:
        seconds[labels] += length_us // 1_000_000
    assert (seconds['{"team":"red"}'], seconds['{"run":"7","team":"blue"}']) == (3600, 7200)
    assert seconds['{"run":"7"}'] == 3600
    found = by_team(lab)
    assert found["blue"] > 1.9 * found["red"] > 0
    assert verify(lab.installation.database).is_sound


def test_a_change_that_changes_nothing_leaves_no_event(lab: Lab) -> None:
    lab.ask("label", "one", {"team": "red"})
    sequence = lab.instance.sequence
    lab.ask("label", "one", {"team": "red", "absent": None})
    assert lab.instance.sequence == sequence


def test_labels_are_checked_and_bounded(lab: Lab) -> None:
    with pytest.raises(BadInput, match="is not a valid name for a label"):
        lab.ask("label", "one", {"-": "x"})
    with pytest.raises(BadInput, match="cannot be stored"):
        lab.ask("label", "one", {"a": "\0"})
    lab.ask("label", "one", {f"k{n}": "" for n in range(64)})
    with pytest.raises(BadInput, match="64 labels"):
        lab.ask("label", "one", {"one-more": ""})
    lab.ask("delete", "one")
    with pytest.raises(Conflict, match="cannot be labelled"):
        lab.ask("label", lab.instance.id, {"a": "b"})


MOVES = st.one_of(
    st.tuples(st.just("label"), st.sampled_from(["red", "blue", None])),
    st.tuples(st.sampled_from(["stop", "start", "restart"]), st.none()),
    st.tuples(st.just("resize"), st.sampled_from([1, 2])),
    st.tuples(st.just("wait"), st.sampled_from([1, 600, 40_000])),
)


@given(st.lists(MOVES, max_size=12))
@settings(max_examples=25, deadline=None)
def test_verification_succeeds_after_any_label_changes(moves: list[tuple[str, object]]) -> None:
    lab = Lab()
    try:
        for verb, word in moves:
            try:
                if verb == "label":
                    lab.ask("label", "one", {"team": word})
                elif verb == "resize":
                    lab.ask("resize", "one", ShapeWish(gpus=int(str(word))))
                elif verb == "wait":
                    lab.installation.wait(float(str(word)))
                else:
                    lab.ask(verb, "one")
            except Conflict:
                continue
            if verb in ("stop", "start"):
                lab.installation.settle()
        lab.installation.settle()
        lab.day_over()
        verdict = verify(lab.installation.database)
        assert verdict.is_sound, verdict
    finally:
        lab.installation.database.close()
