"""What an import reads, and what it does to each row: the counts for its report and for its source."""

from collections import Counter
from typing import TYPE_CHECKING, Final

import msgspec

from teraflock.base.clock import Clock
from teraflock.offer.model import Offer, Source
from teraflock.offer.source.store import StoredPrice

if TYPE_CHECKING:
    from pathlib import Path

    from teraflock.offer.dates import DayOf

REASON_EXAMPLES_MAX: Final = 3  # enough to find the error in the file; the others are only counted


class Origin(msgspec.Struct, frozen=True, kw_only=True):
    """What an import reads. `url`, `etag` and `last_modified` are set if it was downloaded."""

    source: str
    layout: str
    path: "Path"
    day_of: "DayOf"
    """Returns the date of the prices in a file."""
    checksum: str = ""
    url: str = ""
    etag: str = ""
    last_modified: str = ""


class Reason(msgspec.Struct, frozen=True):
    """Why rows were rejected or their price refused, the number of rows, and where the first ones are."""

    reason: str
    rows: int
    examples: tuple[str, ...]


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """The result of an import."""

    source: str
    as_of: str
    """The date of the newest file, or else of the newest price. Empty if no date is known."""
    oldest: str
    """The date of the oldest price. Empty if no date is known."""
    date_unknown: int
    """Offers whose price has no known date."""
    rows_read: int
    """Rows of the files. A row may have an on-demand and a spot offer."""
    offers_taken: int
    priced: int
    price_unknown: int
    rejected: tuple[Reason, ...]
    """Rows that were not imported, or one of the two prices of a row."""
    refused: tuple[Reason, ...]
    """Offers that were imported, but whose price is implausible."""
    far_prices: int
    """Offers whose price is far from that of other offers of the same GPU."""
    unknown_gpus: tuple[tuple[str, int], ...]
    """Unknown GPU names, with the number of offers of each."""
    new: int
    changed: int
    gone: int


class Tally:
    """Counts of an import so far: ids, rejections, and changes to the offers of the import before."""

    def __init__(self, stored: dict[int, StoredPrice]) -> None:
        self.rows = 0
        self.ids: dict[int, int] = {}
        self._stored = stored
        self._kept = self.changed = 0
        self._by_status: Counter[str] = Counter()
        self._currencies: set[str] = set()
        self._rejected: dict[str, list[str]] = {}
        self._refused: dict[str, list[str]] = {}
        self._counts: Counter[tuple[str, str]] = Counter()
        self._unknown_gpus: Counter[str] = Counter()
        self._days: Counter[str] = Counter()
        self.far = 0
        self.file_day = ""
        """The date of the newest file, empty if none is known. Rows may have other dates."""

    def reject(self, reason: str, where: str) -> None:
        self._note(self._rejected, "rejected", reason, where)

    def take(self, offer: Offer, id: int, where: str) -> str:
        """Count the offer and return the start date of its price. An unchanged price keeps its date."""
        self._by_status[offer.standing] += 1
        self._days[offer.as_of] += 1
        self._currencies.add(offer.currency)
        if offer.standing == "refused":
            self._note(self._refused, "refused", _kind_of_fault(offer.note), where)
        if offer.kind == "unstated" and offer.gpu_name and not offer.gpu_name.startswith("("):
            self._unknown_gpus[offer.gpu_name] += 1
        if before := self._stored.get(id):
            if (
                offer.price_micros_per_month == before.price_micros_per_month
                and offer.currency == before.currency
                and offer.standing == before.standing
            ):
                self._kept += 1
                return before.since
            self.changed += 1
        return offer.since

    def dated(self, day: str) -> str:
        """Note the date of a file and return it."""
        self.file_day = max(self.file_day, day)
        return day

    def source(self, origin: Origin, import_number: int, clock: Clock, *, url: str) -> Source:
        """Return the source to store. Keeps the old `url` if this import is from a file."""
        return Source(
            name=origin.source,
            layout=origin.layout,
            import_number=import_number,
            place=origin.url or str(origin.path),
            checksum=origin.checksum,
            as_of=self.file_day,
            imported_at=clock.now().isoformat(timespec="seconds"),
            offers=len(self.ids),
            currencies=" ".join(sorted(self._currencies)),
            url=origin.url or url,
            etag=origin.etag,
            last_modified=origin.last_modified,
        )

    def report(self, origin: Origin, *, gone: int) -> Report:
        return Report(
            source=origin.source,
            as_of=self.file_day or max(self._days, default=""),
            oldest=min((day for day in self._days if day), default=""),
            date_unknown=self._days[""],
            far_prices=self.far,
            rows_read=self.rows,
            offers_taken=len(self.ids),
            priced=self._by_status["priced"],
            price_unknown=self._by_status["unknown"],
            rejected=self._reasons(self._rejected, "rejected"),
            refused=self._reasons(self._refused, "refused"),
            unknown_gpus=tuple(self._unknown_gpus.most_common()),
            new=len(self.ids) - self._kept - self.changed,
            changed=self.changed,
            gone=gone,
        )

    def first_reason(self) -> str:
        for reason, examples in self._rejected.items():
            return f"{examples[0]}: {reason}"
        return ""

    def _note(self, examples: dict[str, list[str]], what: str, reason: str, where: str) -> None:
        self._counts[what, reason] += 1
        first = examples.setdefault(reason, [])
        if len(first) < REASON_EXAMPLES_MAX:
            first.append(where)

    def _reasons(self, examples: dict[str, list[str]], what: str) -> tuple[Reason, ...]:
        reasons = [
            Reason(reason, self._counts[what, reason], tuple(first)) for reason, first in examples.items()
        ]
        return tuple(sorted(reasons, key=lambda each: -each.rows))


def _kind_of_fault(note: str) -> str:
    """Return the fault without its figures, so that equal faults are counted together."""
    fault = note.split(". ")[0]
    return "the price is implausibly low" if "implausibly low" in fault else fault
