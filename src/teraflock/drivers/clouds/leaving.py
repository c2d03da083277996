"""Asks spot machines whether the provider takes them back soon, over SSH: every few seconds, a few at a time."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Final

from msgspec.structs import replace

from teraflock.base.errors import TeraflockError
from teraflock.drivers.clouds.model import SpotNotice
from teraflock.drivers.rented import Remote
from teraflock.instance.driver import Ran, Seen

ASK_AGAIN: Final = timedelta(seconds=5)
"""The shortest notice of a provider is 30 seconds."""
THREADS_MAX: Final = 16
ASKED_MAX: Final = 64
"""Machines that one turn asks, those first that waited longest: machines that do not answer must not stop the rest."""
OUTPUT_BYTES_MAX: Final = 4096
LONG_AGO: Final = datetime.min.replace(tzinfo=UTC)


class Leaving:
    def __init__(self, notice: SpotNotice | None, run: Callable[[Remote, Sequence[str]], Ran | None]) -> None:
        self._notice = notice
        self._run = run
        self._asked_at: datetime | None = None
        self._last: dict[str, datetime] = {}
        """When each machine was last asked."""
        self._known: dict[str, datetime] = {}
        """When each machine ends, as far as it was announced."""

    def noted(self, machines: Sequence[Remote], now: datetime) -> tuple[Remote, ...]:
        """The machines, with the time at which each leaves. The first answer of a machine counts."""
        self._known = {each.remote_id: at for each in machines if (at := self._known.get(each.remote_id))}
        if self._notice is not None and self._is_due(now):
            self._ask(self._notice, machines, now)
        return tuple(self.with_end(each) for each in machines)

    def with_end(self, machine: Remote) -> Remote:
        """The machine with the time at which it leaves, as far as it was announced."""
        at = machine.leaving_at or self._known.get(machine.remote_id)
        return machine if at is None else replace(machine, leaving_at=at)

    def _is_due(self, now: datetime) -> bool:
        return self._asked_at is None or not timedelta(0) <= now - self._asked_at < ASK_AGAIN

    def _ask(self, notice: SpotNotice, machines: Sequence[Remote], now: datetime) -> None:
        self._asked_at = now
        spot = [each for each in machines if each.is_spot and each.seen == Seen.RUNNING]
        self._last = {each.remote_id: at for each in spot if (at := self._last.get(each.remote_id))}
        waiting = [each for each in spot if each.remote_id not in self._known]
        asked = sorted(waiting, key=lambda each: self._last.get(each.remote_id, LONG_AGO))[:ASKED_MAX]
        if not asked:
            return
        with ThreadPoolExecutor(min(THREADS_MAX, len(asked))) as threads:
            answers = threads.map(lambda each: self._answer(notice, each), asked)
            for each, output in zip(asked, answers, strict=True):
                self._last[each.remote_id] = now
                if at := notice.read(output, now):
                    self._known[each.remote_id] = at

    def _answer(self, notice: SpotNotice, machine: Remote) -> str:
        """What a machine prints. One that does not answer says nothing, and does not make the site look broken."""
        try:
            ran = self._run(machine, ("sh", "-c", notice.command))
        except TeraflockError:
            return ""
        return ran.stdout[:OUTPUT_BYTES_MAX].decode("utf-8", "replace") if ran else ""
