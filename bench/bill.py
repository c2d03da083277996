"""Measure how fast intervals are charged and how fast a large bill is returned.

Generated intervals are inserted into the meter's table. The biller charges them in a separate process, whose peak
memory is measured. Three sizes show whether the time grows linearly. Bills are requested over HTTP from a separate
server process.
"""

import http.client
import json
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

from bench.cloud_api import serving
from bench.figures import Figure, Section
from bench.processes import Fault, own_peak_bytes, peak_bytes_of, run_task
from teraflock.base.clock import FixedClock
from teraflock.base.events import Event
from teraflock.base.exchange import Rates
from teraflock.base.ids import EventId, new_id
from teraflock.base.size import Size
from teraflock.bill.charge import store as charge_store
from teraflock.bill.service import BillService
from teraflock.bill.times import microseconds
from teraflock.meter import store as meter_store
from teraflock.meter.model import Holding, Interval
from teraflock.storage.database import Database, Transaction
from teraflock.storage.events import record_event
from teraflock.storage.open import open_database
from teraflock.tenant.model import ProjectId

SIZES = (100_000, 300_000, 1_000_000)
PROJECTS = 1_000
LINES = 100_000
START = datetime(2026, 3, 1, tzinfo=UTC)
GB = 1 << 30
BOOK = """\
- from: 2026-01-01
  currency: USD
  gpu: {V100: 3.06/hour, A100: 2.5/hour, H100: 4.1/hour}
  vcpu: 0.0123/hour
  ram: 0.00213/hour
  disk: 0.1/month
  minimum: 60 s
  long-term: {30 days: 5%}
"""
CARDS = ("V100-SXM2", "A100-SXM4-80", "H100-SXM5", "")


def measure() -> Iterator[Section]:
    runs = {size: run_task("bench.bill", "charge", str(size)) for size in SIZES}
    largest = runs[SIZES[-1]]
    yield Section(
        title="charging intervals",
        figures=(
            Figure(
                what=f"{SIZES[-1]:,} intervals to {PROJECTS:,} projects", unit="s", samples=(largest["seconds"],),
                bar=60.0,
            ),
            Figure(what="processor time", unit="s", samples=(largest["cpu_seconds"],)),
            Figure(what="peak memory", unit="MB", samples=(largest["peak_bytes"] / 1e6,), bar=500.0),
            *(Figure(what=f"{size:,} intervals", unit="s", samples=(runs[size]["seconds"],)) for size in SIZES[:-1]),
            Figure(
                what=f"processor time per interval, {SIZES[-1]:,} compared with {SIZES[0]:,}", unit="×",
                samples=((largest["cpu_seconds"] / SIZES[-1]) / (runs[SIZES[0]]["cpu_seconds"] / SIZES[0]),),
            ),
        ),
        notes=("SQLite on disk. Every charge has its ledger entry. One transaction charges 10,000 intervals.",),
    )  # fmt: skip
    yield _shown()
    metered = run_task("bench.bill", "meter", "20000")
    yield Section(
        title="metering",
        figures=(
            Figure(
                what="metering the four events of a launch", unit="ms", samples=(metered["ms_per_launch"],)
            ),
            Figure(what="verifying the same number", unit="s", samples=(metered["verify_seconds"],)),
        ),
    )


def _shown() -> Section:
    """Measure the time from the request to the last byte of the response."""
    asked = {
        "sums by card": "/v1/bill?month=2026-03",
        "by user": "/v1/bill?month=2026-03&by=user",
        "by label": "/v1/bill?month=2026-03&by=label",
        "by instance (5,000 names)": "/v1/bill?month=2026-03&by=instance",
        "a page of 200 lines": "/v1/bill/lines?month=2026-03&limit=200&after=50000",
    }
    with tempfile.TemporaryDirectory(prefix="bench-bill-") as folder:
        home = Path(folder)
        with serving(home):
            key = (home / "cloud" / "operator.key").read_text().strip()
        run_task("bench.bill", "fill", str(LINES), home / "cloud" / "cloud.db")
        with serving(home) as (process, server):
            taken = {what: _asked(server, key, path) for what, path in asked.items()}
            export = _asked(server, key, "/v1/bill/focus?month=2026-03", times=1)
            peak_bytes = peak_bytes_of(process.pid)
    return Section(
        title=f"GET /v1/bill of a project with {LINES:,} lines, over HTTP",
        figures=(
            *(Figure(what=what, unit="ms", samples=taken[what], bar=100.0) for what in asked),
            Figure(what="export of the whole month as FOCUS", unit="s", samples=(export[0] / 1000,)),
            Figure(what="peak memory of the server", unit="MB", samples=(peak_bytes / 1e6,)),
        ),
        notes=("The response has sums in the requested grouping. Lines are returned in pages.",),
    )


def _asked(server: str, key: str, path: str, times: int = 15) -> tuple[float, ...]:
    connection = http.client.HTTPConnection(server.removeprefix("http://"), timeout=300)
    samples = []
    for _ in range(times):
        began = time.perf_counter()
        connection.request("GET", path, headers={"Authorization": f"Bearer {key}"})
        answer = connection.getresponse()
        content = answer.read()
        samples.append(1000 * (time.perf_counter() - began))
        if answer.status != 200 or len(content) < 200:
            raise Fault(f"{path} returned {answer.status}: {content[:200]!r}")
    connection.close()
    return tuple(samples)


def intervals(count: int, projects: Sequence[ProjectId]) -> Iterator[Interval]:
    """Generate runs of minutes to hours, some with a resize, spread over a month."""
    at_us = microseconds(START)
    for index in range(count):
        card = CARDS[index % 4]
        seconds = 300 + index * 7919 % 20_000
        from_us = at_us + (index * 104_729 % 2_500_000) * 1_000_000
        yield Interval(
            instance_id=f"ins_{index:07}", sequence=3, generation=1, project_id=projects[index % len(projects)],
            from_us=from_us, until_us=from_us + seconds * 1_000_000, run_us=from_us, ends_run=True,
            held=Holding(
                size=Size(
                    gpu=card, gpus=1 + index % 8 if card else 0, vcpus=8, ram_bytes=64 * GB, disk_bytes=100 * GB
                ),
                host="hst_1", region="local", name=f"box-{index % 5000}", member=f"mem_{index % 40}",
                labels='{"team":"vision"}' if index % 3 else "{}",
            ),
        )  # fmt: skip


def opened(folder: str) -> tuple[Database, BillService, FixedClock]:
    clock = FixedClock(datetime(2026, 1, 1, tzinfo=UTC))
    database = open_database(f"{folder}/bill.db", clock)
    bills = BillService(database, clock, Rates([]))
    bills.prices.take(BOOK, name="book", member="mem_0")
    clock.move(timedelta(days=100))
    return database, bills, clock


def filled(database: Database, count: int, projects: Sequence[ProjectId]) -> None:
    made, batch = 0, 20_000
    source = intervals(count, projects)
    while made < count:
        part = [next(source) for _ in range(min(batch, count - made))]

        def work(tx: Transaction, part: list[Interval] = part, made: int = made) -> None:
            meter_store.add_intervals(tx, made + 1, part)
            meter_store.set_cursor(tx, meter_store.MeterCursor(intervals=made + len(part)))

        database.write(work)
        made += len(part)


def charge(count: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory(prefix="bench-bill-") as folder:
        database, bills, _ = opened(folder)
        filled(database, count, [ProjectId(f"prj_{number:04}") for number in range(PROJECTS)])
        began, cpu = time.perf_counter(), time.process_time()
        booked = bills.biller.catch_up()
        seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
        assert booked == count
        database.close()
        return {"seconds": seconds, "cpu_seconds": cpu, "peak_bytes": own_peak_bytes()}


def fill(count: int, path: str) -> dict[str, int]:
    """Add `count` lines to the first project of a server that is not running."""
    clock = FixedClock(datetime(2026, 1, 1, tzinfo=UTC))
    database = open_database(path, clock)
    bills = BillService(database, clock, Rates([]))
    bills.prices.take(BOOK, name="book", member="mem_0")
    clock.move(timedelta(days=100))
    with database.read() as tx:
        row = tx.one("SELECT id FROM project")
    assert row is not None
    filled(database, count, [row[0]])
    bills.biller.catch_up()
    with database.read() as tx:
        lines = sum(each.lines for each in charge_store.sums(tx, row[0], "2026-03"))
    assert lines > count * 0.9
    database.close()
    return {"lines": lines}


def meter(count: int) -> dict[str, float]:
    """Meter the events of launches, then verify the bill."""
    with tempfile.TemporaryDirectory(prefix="bench-bill-") as folder:
        database, bills, clock = opened(folder)
        database.write(lambda tx: _launches(tx, count, clock))
        began = time.perf_counter()
        bills.meter.catch_up()
        metered = time.perf_counter() - began
        bills.biller.catch_up()
        began = time.perf_counter()
        assert bills.verify().is_sound
        return {"ms_per_launch": 1000 * metered / count, "verify_seconds": time.perf_counter() - began}


def _launches(tx: Transaction, count: int, clock: FixedClock) -> None:
    made = 0
    for index in range(count):
        for sequence, phase in enumerate(("queued", "starting", "running", "stopping"), start=1):
            clock.move(timedelta(milliseconds=10))
            made += 1
            random = partial(_random_bytes, made)
            details: dict[str, str | int | float | bool | None] = {
                "sequence": sequence, "generation": 1, "to": phase, "gpu": "V100-SXM2", "gpus": 1, "vcpus": 8,
                "ram_bytes": 64 * GB, "disk_bytes": 100 * GB, "name": f"box-{index}", "host": "hst_1", "labels": "{}",
            }  # fmt: skip
            record_event(
                tx,
                Event(
                    id=EventId(new_id("evt", clock.now(), random)), at=clock.now(),
                    kind="instance.moved", subject=f"ins_{index:07}", project="prj_1", details=details,
                ),
            )  # fmt: skip


def _random_bytes(number: int, count: int) -> bytes:
    return number.to_bytes(count, "big")


if __name__ == "__main__":
    if sys.argv[1] == "fill":
        print(json.dumps(fill(int(sys.argv[2]), sys.argv[3])))
    else:
        print(json.dumps({"charge": charge, "meter": meter}[sys.argv[1]](int(sys.argv[2]))))
