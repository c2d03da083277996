"""Queued launches."""

from teraflock.client.noun import PAGE, Noun, pages
from teraflock.wire.queue import QueuedAnswer, QueuedPage


class Queue(Noun):
    def page(self, *, after: str = "", limit: int = PAGE, ended: bool = False) -> QueuedPage:
        return self._get(QueuedPage, "queue", after=after, limit=limit, ended=ended or None)

    def list(self, *, ended: bool = False) -> tuple[QueuedAnswer, ...]:
        return pages(lambda after: self.page(after=after, ended=ended))

    def get(self, ref: str) -> QueuedAnswer:
        return self._get(QueuedAnswer, "queue", ref)

    def cancel(self, ref: str) -> QueuedAnswer:
        return self._act("DELETE", QueuedAnswer, "queue", ref)
