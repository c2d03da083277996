"""Observes the database at every commit, and reports to the oracle.

For an instance: its row, its reservations, and the state of its host. For a host: whether readings find it,
and whether the database says so. If two readings in a row did not find it, it must be recorded as away, and
everything on it counts as lost since the last successful reading, whatever the rows of instances say. For
traffic: the readings of counters. Another check ensures that no more was read than guests sent.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from tests.simulation.oracle import RUNS, Held, Oracle, Sent

from teraflock.base.errors import Unavailable
from teraflock.drivers.simulated.cloud import SimulatedCloud
from teraflock.drivers.simulated.engine import SimulatedEngine
from teraflock.fleet.model import HostReport
from teraflock.instance.driver import Sighting
from teraflock.storage.database import Database, Transaction

STRIKES = 2


class WatchedEngine(SimulatedEngine):
    """Records which hosts it reported, or None if it did not answer."""

    read: Sequence[str] | None = None

    def forget(self) -> None:
        self.read = None

    def hosts(self) -> Sequence[HostReport]:
        self.read = None
        try:
            there = super().hosts()
        except Unavailable:
            self.read = ()
            raise
        self.read = [host.name for host in there]
        return there

    def sightings(self) -> Iterable[Sighting]:
        """A reading after an outage needs these as well. Without an answer it has no effect and does not
        count."""
        try:
            return super().sightings()
        except BaseException:
            self.read = None
            raise


class WatchedCloud(SimulatedCloud):
    """Records which instances it listed, or None if it did not answer."""

    read: Sequence[str] | None = None

    def forget(self) -> None:
        self.read = None

    def sightings(self) -> Iterable[Sighting]:
        self.read = None
        there = list(super().sightings())
        self.read = [each.instance_id for each in there]
        return there


class Observer:
    def __init__(
        self,
        oracle: Oracle,
        names: dict[str, str],
        now_us: Callable[[], int],
        gone: Callable[[str], None],
    ) -> None:
        """`names` are project names by id; `gone` is called for every deleted instance."""
        self._gone = gone
        self.count: Counter[str] = Counter()
        self._oracle = oracle
        self._names = names
        self._now_us = now_us
        self._seen_us: dict[str, int] = {}
        """By host: when a reading last found it."""
        self._strikes: Counter[str] = Counter()
        self._rows: dict[str, tuple[Any, ...]] = {}
        self._places: dict[str, tuple[str, str, str]] = {}
        self._readings = 0

    # -- hosts -------------------------------------------------------------------------------------------------

    def began(self) -> None:
        """A new process started, which remembers no earlier reading."""
        self._strikes.clear()

    def found_hosts(self, names: Sequence[str]) -> None:
        self._seen_us.update(dict.fromkeys(names, self._now_us()))

    def read_hosts(self, found: Sequence[str] | None, database: Database) -> None:
        """Process a completed reading of the hosts and its results."""
        if found is None:
            return
        with database.read() as tx:
            states: dict[str, str] = dict(tx.all("SELECT name, state FROM host WHERE kind = 'own'"))
        self.found_hosts(found)
        for name, state in states.items():
            self._strikes[name] = 0 if name in found else self._strikes[name] + 1
            if name in found:
                assert state != "away", f"{name} was just found"
            elif self._strikes[name] >= STRIKES:
                assert state == "away", f"{name} was not found {self._strikes[name]} times in a row"

    # -- commits -----------------------------------------------------------------------------------------------

    def look(self, tx: Transaction) -> tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]:
        """Return what a transaction will leave if it is committed."""
        cards: dict[str, int] = dict(
            tx.all(
                "SELECT instance_id, COUNT(*) FROM host_gpu WHERE instance_id IS NOT NULL GROUP BY instance_id"
            )
        )
        rows = tx.all(
            "SELECT i.id, i.project_id, i.phase, i.wanted, i.gpu, i.held_vcpus, i.held_ram_bytes, i.held_disk_bytes,"
            " i.held_snapshots_bytes, i.spec, i.host_id, h.name, h.region, i.sequence, i.labels, i.stop_at_us,"
            " h.state, i.operation"
            " FROM instance i LEFT JOIN host h ON h.id = i.host_id WHERE i.phase <> 'gone' OR h.name IS NOT NULL"
            " OR i.gone_at_us >= :us ORDER BY i.id",
            us=self._now_us(),
        )
        readings = tx.all(
            "SELECT number, instance_id, bytes - bytes_before, at_us FROM meter_reading WHERE number > :number"
            " AND instance_id LIKE 'ins%' ORDER BY number",
            number=self._readings,
        )
        return [(*row[:5], int(cards.get(row[0], 0)), *row[5:]) for row in rows], readings

    def saw(self, seen: tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]) -> None:
        rows, readings = seen
        for *row, state, operation in rows:
            if state == "away" and row[2] in RUNS:
                row[2] = "away"
            if self._saw_row(tuple(row)) and row[2] == "away" and operation:
                self.count["away in work"] += 1
        for number, id, sent_bytes, at_us in readings:
            self._readings = number
            held = self._oracle.lives[id].held
            assert held is not None, "an instance that was never seen sends nothing"
            self._oracle.lives[id].sent.append(Sent(held=held, sent_bytes=int(sent_bytes), at_us=at_us))
            self.count["readings"] += 1

    def _saw_row(self, row: tuple[Any, ...]) -> bool:
        """Return whether the phase changed."""
        id, project, phase, wanted, gpu, gpus, vcpus, ram, disk, kept, spec, host, host_name, region, told = (
            row[:15]
        )
        labels, limit_us = row[15:]
        before = self._rows.get(id)
        if before == row:
            return False
        self._rows[id] = row
        if host is None:  # a deleted instance was on its last host
            host, host_name, region = self._places.get(id, ("", "", ""))
        self._places[id] = (host, host_name, region)
        if phase == "gone":
            self._gone(id)
        is_spot = '"mode":"spot"' in spec or '"mode":"bid"' in spec  # a bid is charged like spot
        mode = "spot" if is_spot else "on-demand"
        held = Held(gpu, gpus, vcpus, ram, disk, kept, mode, host, region, labels)
        is_rented = '"rental":{' in spec
        if is_rented and phase == "running" and (before is None or before[2] != "running"):
            self.found_hosts([host_name])  # it has just answered
        is_lost = phase == "away" or (phase == "failed" and is_rented)
        lost_us = self._seen_us.get(host_name) if is_lost and before else None
        is_told = before is None or before[14] != told
        self._oracle.see(
            id, self._names[project], phase, wanted, held, self._now_us(), lost_us, is_told=is_told, limit_us=limit_us
        )  # fmt: skip
        if before is None:
            self.count["launched"] += 1
            return True
        self.count[str(phase)] += before[2] != phase
        return bool(before[2] != phase)
