"""Records which project last used a card, and cleans a card before another project gets it.

The record is a file, written after the card is cleaned and before its next guest starts. After a crash in
between, the card is cleaned once more; cleaning is never skipped. A card without a record counts as used.
"""

from collections.abc import Callable, Iterable
from pathlib import Path

from teraflock.instance.driver import GpuSlot

Clean = Callable[[str], object]
"""Cleans the card in a slot, or raises."""


class HandOver:
    def __init__(self, folder: Path, clean: Clean) -> None:
        self._folder = folder
        self._clean = clean

    def give(self, slots: Iterable[GpuSlot], project: str, *, has: Iterable[str] = ()) -> None:
        """Give these cards to a project. `has` are the slots of cards that its guest is using now."""
        in_use = set(has)
        for each in slots:
            note = self._folder / each.slot.replace("/", "_").replace(":", "-")
            if _last(note) == project:
                continue
            if each.slot not in in_use:
                self._clean(each.slot)
            self._folder.mkdir(parents=True, exist_ok=True)
            beside = note.with_name(f"{note.name}.new")
            beside.write_text(project, "ascii")
            beside.replace(note)


def _last(note: Path) -> str:
    try:
        return note.read_text("ascii")
    except FileNotFoundError:
        return ""
