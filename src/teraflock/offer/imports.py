"""Import a catalog: replace all offers of a source with those of a file, in one transaction.

Invariants: readers see all of an import or nothing; a file that cannot be read completely changes nothing; importing
the same file again changes nothing; changed and removed prices are kept as past prices, with their dates.
"""

import os
import threading
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import date
from typing import TYPE_CHECKING, Final

import msgspec

from teraflock.base.clock import Clock, today
from teraflock.base.errors import BrokenSource, Refused, StorageFailed, Unavailable
from teraflock.base.events import Event
from teraflock.base.exchange import Rates
from teraflock.base.ids import EventId, new_id
from teraflock.offer.model import FAR_PRICE, Offer, Source
from teraflock.offer.source import store
from teraflock.storage.database import Database, Transaction

if TYPE_CHECKING:
    from pathlib import Path

    from teraflock.offer.dates import DayOf

SHIPPED: Final = "shipped"
SHIPPED_PATH: Final = f"{os.path.dirname(__file__)}/data/offers.csv"  # noqa: PTH120 -- pathlib costs a cold start 7 ms

REASON_EXAMPLES_MAX: Final = 3  # enough to find the error in the file; the others are only counted
PROGRESS_ROWS: Final = 1_000


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


def import_offers(
    database: Database,
    rates: Rates,
    clock: Clock,
    origin: Origin,
    progress: Callable[[int], None] = lambda rows: None,
    random_bytes: Callable[[int], bytes] = os.urandom,
) -> Report:
    """Replace all offers of a source with those of a file or folder, in one transaction."""
    # Imported here because only imports need the importers, and `tera offers` starts faster without them.
    from teraflock.offer.importers import reader
    from teraflock.offer.intake import Rejected, identified, offer_from
    from teraflock.offer.place.store import update_places
    from teraflock.offer.shape.store import update_shapes
    from teraflock.storage.events import record_event

    on = today(clock)
    read = reader(origin.layout)
    stopped = threading.Event()

    def work(tx: Transaction) -> Report:
        before = store.source(tx, origin.source)
        stored = store.stored_prices(tx, origin.source)
        import_number = store.next_import_number(tx)
        tally = _Tally(stored)

        def count() -> None:
            tally.rows += 1
            if stopped.is_set():
                raise Refused("The import was stopped")
            if tally.rows % PROGRESS_ROWS == 0:
                progress(tally.rows)

        def imported() -> Iterator[tuple[Offer, int, str]]:
            for row in read(origin.path, count, lambda file: tally.dated(origin.day_of(file))):
                offer = (
                    row
                    if isinstance(row, Rejected)
                    else offer_from(row, source=origin.source, rates=rates, on=on)
                )
                if isinstance(offer, Rejected):
                    tally.reject(offer.reason, offer.where)
                else:
                    id = identified(offer, tally.ids)
                    yield offer, id, tally.take(offer, id, row.where)

        store.add(tx, imported(), import_number)
        if not tally.ids:
            raise BrokenSource(
                f"None of the {tally.rows:,} rows of `{origin.url or origin.path}` can be imported",
                hint=tally.first_reason(),
            )
        _refuse_older(origin.source, tally.file_day, before)
        gone = stored.keys() - tally.ids.keys()
        until = tally.file_day or on.isoformat()
        store.supersede(tx, origin.source, import_number, until, changed=bool(gone) or tally.changed > 0)
        tally.far = _flag_far_prices(tx, origin.source, rates, on)
        store.put_source(tx, tally.source(origin, import_number, clock, url=before.url if before else ""))
        update_places(tx, origin.source)
        update_shapes(tx, origin.source)
        store.mark_outdated(tx)
        for each in store.sources(tx):  # an import may outdate prices of other sources
            store.update_counts(tx, each.name)
            update_shapes(tx, each.name)
        report = tally.report(origin, gone=len(gone))
        record_event(tx, _imported(report, clock, random_bytes))
        return report

    try:
        return database.write(work)
    except BaseException:
        stopped.set()  # Ctrl-C reaches only the caller; this stops the writer's thread
        raise


def _flag_far_prices(tx: Transaction, name: str, rates: Rates, on: date) -> int:
    """Flag the prices of a source that are far from those of other providers, and return their number."""
    from teraflock.offer.peers import far_ranges

    for far in far_ranges(store.price_ranges(tx), name, rates, on):
        store.flag_prices(tx, far.group, far.least, far.most, FAR_PRICE)
    return store.flagged(tx, name, FAR_PRICE)


def _refuse_older(name: str, newest: str, before: Source | None) -> None:
    if before and newest and newest < before.as_of and name != SHIPPED:
        raise Refused(
            f"These prices of `{name}` are from {newest}, older than the stored ones from {before.as_of}",
            hint="If the date is wrong, give the right one with `--as-of`",
        )


def _imported(report: Report, clock: Clock, random_bytes: Callable[[int], bytes]) -> Event:
    """Return the event that tells the planner and others about the import."""
    return Event(
        id=EventId(new_id("event", clock.now(), random_bytes)),
        at=clock.now(),
        kind="offers.imported",
        subject=report.source,
        details={
            "as_of": report.as_of,
            "offers": report.offers_taken,
            "new": report.new,
            "changed": report.changed,
            "gone": report.gone,
        },
    )


class _Tally:
    """Counts of an import so far: ids, rejections, and changes to the offers of the import before."""

    def __init__(self, stored: dict[int, store.StoredPrice]) -> None:
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


def _no_day(file: "Path") -> str:
    """The rows of the shipped file have their own dates."""
    return ""


# --- what ships ----------------------------------------------------------------------------------------------------


def ensure_shipped(database: Database, rates: Rates, clock: Clock) -> None:
    """Import the shipped offers if the database does not have those of this version yet."""
    with open(SHIPPED_PATH, "rb") as file:  # noqa: PTH123 -- as above
        checksum = f"{zlib.crc32(file.read()):08x}"
    with database.read() as tx:
        before = store.source(tx, SHIPPED)
    if before is None or before.checksum != checksum:
        from pathlib import Path

        path = Path(SHIPPED_PATH)
        origin = Origin(source=SHIPPED, layout="teraflock", path=path, day_of=_no_day, checksum=checksum)
        try:
            import_offers(database, rates, clock, origin)
        except (StorageFailed, Unavailable):
            if before is None:
                raise  # otherwise keep the offers of an earlier version: a read-only home must stay usable
