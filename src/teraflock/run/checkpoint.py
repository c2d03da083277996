"""Checkpoints: which entries of the guest's folder to copy, which copies to keep, and how often to save. Pure.

A checkpoint is one entry of the checkpoint folder, a file or a folder, that appears by an atomic rename. Names that
differ only in their numbers (`step-100.pt`, `step-200.pt`) are a *series*; the newest few of each series are kept.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from math import sqrt
from statistics import median
from typing import Annotated, Final, TypeVar

import msgspec
from msgspec import Meta

from teraflock.base.quantities import bytes_text, count_text
from teraflock.instance.archive import ENTRIES_MAX
from teraflock.run.model import Checkpoint

NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._=+@-]{0,199}")
"""Other names are ignored: they come from the guest, and are shown on terminals and pages."""
UNFINISHED: Final = (".tmp", ".part", ".partial", ".new", ".incomplete")
KEPT_MAX: Final = 1000
"""Copies of one run over all series: a command may give each checkpoint a new name."""
DIGITS: Final = re.compile(r"\d+")
SAVE_SECONDS: Final = 10.0
"""How long a save blocks the command, as long as nothing is known about it."""
SAVE_SECONDS_MIN: Final = 1.0
SAVE_BYTES_PER_SECOND: Final = 500_000_000
"""A network disk, or a GPU's memory that is copied and written by Python."""
LOSS_HOURS: Final = {"spot": 2.0, "bid": 2.0}
LOSS_HOURS_STEADY: Final = 72.0
"""Mean time between losses of a machine, by purchase mode."""


class GuestEntry(msgspec.Struct, frozen=True, kw_only=True):
    """An entry of the guest's checkpoint folder, as the guest describes it."""

    name: str
    mark: str
    written_ns: Annotated[int, Meta(ge=0, le=(1 << 63) - 1)]
    size_bytes: Annotated[int, Meta(ge=0, le=1 << 60)]
    files: Annotated[int, Meta(ge=0, le=1 << 60)] = 1
    """It and all files and folders below it."""
    begun_ns: Annotated[int, Meta(ge=0, le=(1 << 63) - 1)] = 0
    """When the first of its files was created, under any name. 0: unknown."""
    done_ns: Annotated[int, Meta(ge=0, le=(1 << 63) - 1)] = 0
    """When it was renamed, or changed in any other way."""


Entry = TypeVar("Entry", GuestEntry, Checkpoint)


def to_pull(
    seen: Sequence[GuestEntry], kept: Iterable[Checkpoint], *, keep: int, bytes_max: int
) -> tuple[GuestEntry, ...]:
    """Return the entries that the server lacks, oldest first: only those that it would keep."""
    wanted = newest([each for each in seen if is_complete(each)], keep)
    marks = {each.name: each.mark for each in kept}
    found = [each for each in wanted if marks.get(each.name) != each.mark and not too_large(each, bytes_max)]
    return tuple(sorted(found, key=lambda each: (each.written_ns, each.name)))


def not_kept(seen: Sequence[GuestEntry], *, keep: int, bytes_max: int) -> str:
    """Why entries that look like checkpoints are never copied. Empty: there are none of them."""
    finished = [each for each in seen if not each.name.endswith(UNFINISHED)]
    odd = sum(not NAME.fullmatch(each.name) for each in finished)
    wanted = newest([each for each in finished if is_complete(each)], keep)
    large = [f"`{each.name}` has {why}" for each in wanted if (why := too_large(each, bytes_max))]
    named = (
        [f"{count_text(odd, 'name')} with other characters than letters, digits and `._=+@-`"] if odd else []
    )
    return ". ".join([*large[:1], *named])


def too_large(entry: GuestEntry, bytes_max: int) -> str:
    """Which limit an entry exceeds, so that it is not read for nothing. Empty: none."""
    if entry.size_bytes > bytes_max:
        return f"more than {bytes_text(bytes_max)}"
    return f"more than {ENTRIES_MAX:,} files" if entry.files > ENTRIES_MAX else ""


def to_drop(kept: Sequence[Checkpoint], *, keep: int) -> tuple[Checkpoint, ...]:
    """Return the copies that are too old to keep."""
    wanted = {each.id for each in newest(kept, keep)}
    return tuple(each for each in kept if each.id not in wanted)


def is_complete(entry: GuestEntry) -> bool:
    return bool(NAME.fullmatch(entry.name)) and not entry.name.endswith(UNFINISHED)


def newest(entries: Sequence[Entry], keep: int) -> list[Entry]:
    """Return the newest `keep` entries of each series, and of all of them the newest that may be kept."""
    series: dict[str, list[Entry]] = defaultdict(list)
    for each in entries:
        series[DIGITS.sub("#", each.name)].append(each)
    found = [each for one in series.values() for each in _newest_first(one)[:keep]]
    return _newest_first(found)[:KEPT_MAX]


def _newest_first(entries: Sequence[Entry]) -> list[Entry]:
    return sorted(entries, key=lambda each: (each.written_ns, each.name), reverse=True)


def checkpoint_every_seconds(loss_hours: float, save_seconds: float = SAVE_SECONDS) -> int:
    """Return the best time between two checkpoints, by Young and Daly: the square root of 2 × save time × mean time
    between losses."""
    return max(1, round(sqrt(2 * save_seconds * loss_hours * 3600)))


def expected_loss_hours(mode: str) -> float:
    """Mean time between losses of a machine, as long as nothing was learned about its place."""
    return LOSS_HOURS.get(mode, LOSS_HOURS_STEADY)


def saved_seconds(entry: GuestEntry, kept: Iterable[Checkpoint]) -> float | None:
    """How long the command took to save an entry. None: unknown, because the file was copied there, which keeps an
    older time of writing, or because the same file had been saved before and was written over."""
    if not 0 < entry.begun_ns <= entry.written_ns <= entry.done_ns:
        return None
    if any(each.name == entry.name and each.written_ns >= entry.begun_ns for each in kept):
        return None
    return (entry.done_ns - entry.begun_ns) / 1e9


def measured_save_seconds(kept: Iterable[Checkpoint]) -> float | None:
    """The usual time of a save. None: it was never measured."""
    found = [each.saved_seconds for each in kept if each.saved_seconds is not None]
    return median(found) if found else None


def save_seconds(size_bytes: int | None, measured: float | None = None) -> float:
    """How long a save blocks the command: as measured, otherwise from its size. None: no checkpoint was seen yet."""
    if measured is not None:
        return max(SAVE_SECONDS_MIN, measured)
    if size_bytes is None:
        return SAVE_SECONDS
    return max(SAVE_SECONDS_MIN, size_bytes / SAVE_BYTES_PER_SECOND)


def egress_seconds(size_bytes: int, micros_per_gb: int, micros_per_hour: int) -> float:
    """How long the machine could run for what the copy of a checkpoint costs. It counts like time to save."""
    return size_bytes / 1e9 * micros_per_gb / micros_per_hour * 3600 if micros_per_hour else 0.0


def copied_bytes(hours: float, size_bytes: int, every_seconds: int) -> int:
    """What a run copies to the server: a checkpoint for each interval, and one at the end."""
    return size_bytes * (1 + int(hours * 3600 / every_seconds))
