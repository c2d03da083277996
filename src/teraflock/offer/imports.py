"""Import a catalog: replace all offers of a source with those of a file, in one transaction.

Invariants: readers see all of an import or nothing; a file that cannot be read completely changes nothing; importing
the same file again changes nothing; changed and removed prices are kept as past prices, with their dates.
"""

import os
import threading
import zlib
from collections.abc import Callable, Iterator
from datetime import date
from typing import TYPE_CHECKING, Final

from teraflock.base.clock import Clock, today
from teraflock.base.errors import BrokenSource, Refused, StorageFailed, Unavailable
from teraflock.base.events import Details, Event, new_event
from teraflock.base.exchange import Rates
from teraflock.offer.model import FAR_PRICE, Offer, Source
from teraflock.offer.source import store
from teraflock.offer.tally import Origin, Report, Tally
from teraflock.storage.database import Database, Transaction

if TYPE_CHECKING:
    from pathlib import Path

SHIPPED: Final = "shipped"
SHIPPED_PATH: Final = f"{os.path.dirname(__file__)}/data/offers.csv"  # noqa: PTH120 -- pathlib costs a cold start 7 ms

PROGRESS_ROWS: Final = 1_000
REMOVED_FEW: Final = 100  # so many offers may always be removed, even if they are most of a small catalog


def import_offers(
    database: Database,
    rates: Rates,
    clock: Clock,
    origin: Origin,
    progress: Callable[[int], None] = lambda rows: None,
    random_bytes: Callable[[int], bytes] = os.urandom,
    *,
    may_remove_most: bool = True,
) -> Report:
    """Replace all offers of a source with those of a file or folder, in one transaction."""
    # Imported here because only imports need the importers, and `tera offers` starts faster without them.
    from teraflock.offer.importers import reader
    from teraflock.offer.intake import Rejected, identified, offer_from
    from teraflock.offer.shape.store import update_shapes
    from teraflock.storage.events import record_event

    on = today(clock)
    read = reader(origin.layout)
    stopped = threading.Event()

    def work(tx: Transaction) -> Report:
        before = store.source(tx, origin.source)
        stored = store.stored_prices(tx, origin.source)
        import_number = store.next_import_number(tx)
        tally = Tally(stored)

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
        if not may_remove_most and len(gone) > max(REMOVED_FEW, len(stored) // 2):
            raise Refused(
                f"This would remove {len(gone):,} of the {len(stored):,} offers of `{origin.source}`",
                hint="Give the whole catalog, or import a part with another name and `--layout`. `--yes` removes them",
            )
        until = tally.file_day or on.isoformat()
        store.supersede(tx, origin.source, import_number, until, changed=bool(gone) or tally.changed > 0)
        tally.far = _flag_far_prices(tx, origin.source, rates, on)
        store.put_source(tx, tally.source(origin, import_number, clock, url=before.url if before else ""))
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

    found = list(far_ranges(store.price_ranges(tx), name, rates, on))
    for far in found:
        store.flag_prices(tx, far.group, far.least, far.most, FAR_PRICE)
    return store.flagged(tx, name, FAR_PRICE) if found else 0


def _refuse_older(name: str, newest: str, before: Source | None) -> None:
    if before and newest and newest < before.as_of and name != SHIPPED:
        raise Refused(
            f"These prices of `{name}` are from {newest}, older than the stored ones from {before.as_of}",
            hint="If the date is wrong, give the right one with `--as-of`",
        )


def _imported(report: Report, clock: Clock, random_bytes: Callable[[int], bytes]) -> Event:
    """Return the event that tells the planner and others about the import."""
    details: Details = {
        "as_of": report.as_of,
        "offers": report.offers_taken,
        "new": report.new,
        "changed": report.changed,
        "gone": report.gone,
    }
    return new_event("offers.imported", report.source, clock.now(), random_bytes, details)


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
