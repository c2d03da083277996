"""Checks that no tenant pays for a time in which no server watched the site.

A site is watched while a server reads its hosts. Between two watched periods is a gap. A run may be charged until the
last reading before the gap. It may be charged during the gap only if the engine showed afterwards that the same guest
kept running: the guest started before that last reading.

When the clock is set back, the time of an old gap comes again, and this time the site is watched. Events then include
the last reading of the site (`watched_us`), which is later than they are. A gap that ended by then was over before the
change was made, so it does not concern a run that began with that change.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby, pairwise

from teraflock.bill.verify.check import Fault
from teraflock.bill.verify.row import Named, Said
from teraflock.bill.verify.timeline import RUNS, Span, spans, told

Gap = tuple[int, int]


class HostGaps:
    """The gaps of every host."""

    def __init__(self, rows: Iterable[Named], sites: Mapping[str, str]) -> None:
        """`rows` are ordered by site and time. `sites` maps hosts to sites."""
        self._sites = sites
        self._gaps: dict[str, list[Gap]] = {}
        self._ends: dict[str, list[int]] = {}
        for site, own in groupby(rows, lambda row: row["site"]):
            found = [(one["until_us"], two["from_us"]) for one, two in pairwise(own)]
            self._gaps[site] = [(from_us, until_us) for from_us, until_us in found if from_us < until_us]
            self._ends[site] = [until_us for _, until_us in self._gaps[site]]

        self._last_us = max((ends[-1] for ends in self._ends.values() if ends), default=0)

    def is_any_after(self, us: int) -> bool:
        """Whether there is any gap after a time."""
        return us < self._last_us

    def gaps(self, host: str, from_us: int, until_us: int | None) -> Iterator[Gap]:
        """The gaps that overlap with a period."""
        site = self._sites.get(host, "")
        for gap in self._gaps.get(site, [])[bisect_right(self._ends.get(site, []), from_us) :]:
            if until_us is not None and gap[0] >= until_us:
                return
            yield gap


def check_watched(
    instance_id: str, events: Sequence[Said], ran: Sequence[Named], watch: HostGaps
) -> Iterator[Fault]:
    """`ran` are the records that the guest kept running. Changes that are not metered yet count too, because they may
    end a run in the past."""
    changes = told(events)
    if not changes or not watch.is_any_after(min(said["at_us"] for said in changes)):
        return
    proofs = {row["at_us"]: row for row in ran}
    for span in spans(changes)[0]:
        if span.run_us is None:
            continue
        for from_us, until_us in watch.gaps(span.says("host"), span.from_us, span.until_us):
            if _is_after(_first_of_run(changes, span), until_us):
                continue
            before = [said["at_us"] for said in changes if not _is_after(said, until_us)]
            known_us = max([from_us, *before])
            if not _ends_by(span, known_us) and not _ran_on(proofs.get(until_us), changes, from_us):
                what = f"is charged from {known_us} to {until_us}, but nothing shows that it ran then"
                yield Fault(where=f"instance {instance_id}", what=what)


def _is_after(said: Said, gap_until_us: int) -> bool:
    """Whether a change was made after a gap, regardless of the clock."""
    return bool(max(said["at_us"], said.get("watched_us", 0)) >= gap_until_us)


def _first_of_run(changes: Sequence[Said], span: Span) -> Said:
    """The change that started the run of a span."""
    index = span.sequence - 1
    while index > 0 and changes[index - 1]["to"] in RUNS:
        index -= 1
    return changes[index]


def _ends_by(span: Span, us: int) -> bool:
    return span.until_us is not None and span.until_us <= max(us, span.from_us)


def _ran_on(proof: Named | None, changes: Sequence[Said], from_us: int) -> bool:
    if proof is None:
        return False
    before = [said["at_us"] for said in changes if said["sequence"] <= proof["sequence"]]
    return bool(proof["started_us"] <= max([from_us, *before]))
