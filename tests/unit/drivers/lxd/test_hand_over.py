"""A card is cleaned before another project gets it, and only then."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from teraflock.drivers.lxd.hand_over import HandOver
from teraflock.fleet.model import GpuKind
from teraflock.instance.driver import GpuSlot

SLOTS = ("0000:41:00.0", "0000:42:00.0", "0000:42:00.0/MIG-1")
CARDS = {slot: GpuSlot(slot, GpuKind.MIG if "/" in slot else GpuKind.PHYSICAL) for slot in SLOTS}


@given(st.lists(st.tuples(st.sampled_from(SLOTS), st.sampled_from(("prj_a", "prj_b", "prj_c")))))
def test_a_card_is_cleaned_exactly_when_its_project_changes(
    tmp_path_factory: pytest.TempPathFactory, turns: list[tuple[str, str]]
) -> None:
    folder, cleaned, last = tmp_path_factory.mktemp("cards"), list[str](), dict[str, str]()
    for slot, project in turns:
        cleaned.clear()
        # A new object each time, as after a restart.
        HandOver(folder, cleaned.append).give([CARDS[slot]], project)
        assert cleaned == ([slot] if last.get(slot) != project else [])
        last[slot] = project


def test_a_card_that_could_not_be_cleaned_is_cleaned_next_time(tmp_path: Path) -> None:
    def fails(slot: str) -> None:
        raise RuntimeError(slot)

    card, cleaned = [CARDS[SLOTS[0]]], list[str]()
    HandOver(tmp_path, lambda slot: None).give(card, "prj_a")
    with pytest.raises(RuntimeError):
        HandOver(tmp_path, fails).give(card, "prj_b")
    HandOver(tmp_path, cleaned.append).give(card, "prj_b")
    assert cleaned == [SLOTS[0]]


def test_card_in_use_by_the_same_guest_is_not_cleaned(tmp_path: Path) -> None:
    cleaned = list[str]()
    HandOver(tmp_path, cleaned.append).give([CARDS[SLOTS[0]]], "prj_a", has=[SLOTS[0]])
    HandOver(tmp_path, cleaned.append).give([CARDS[SLOTS[0]]], "prj_a")
    assert cleaned == []
