"""Requests for operators: instances of every tenant, and events of the server."""

from teraflock.client.noun import PAGE, Noun
from teraflock.wire.event import EventPage
from teraflock.wire.instance import LogAnswer
from teraflock.wire.operator import LocatedInstance, LocatedPage, StartByOperator, StopByOperator
from teraflock.wire.queue import QueuedOfTenantAnswer, QueuedOfTenantList


class Operator(Noun):
    def instances(
        self, *, organisation: str = "", host: str = "", state: str = "", after: str = "", limit: int = PAGE
    ) -> LocatedPage:
        return self._get(
            LocatedPage, "operator", "instances",
            organisation=organisation, host=host, state=state, after=after, limit=limit,
        )  # fmt: skip

    def instance(self, ref: str, *, organisation: str = "") -> LocatedInstance:
        return self._get(LocatedInstance, "operator", "instances", ref, organisation=organisation)

    def stop(self, ref: str, reason: str, *, organisation: str = "") -> LocatedInstance:
        return self._acted(ref, "stop", StopByOperator(reason=reason), organisation)

    def start(
        self, ref: str, reason: str, *, organisation: str = "", release_only: bool = False
    ) -> LocatedInstance:
        body = StartByOperator(reason=reason, release_only=release_only)
        return self._acted(ref, "start", body, organisation)

    def delete(self, ref: str, reason: str, *, organisation: str = "") -> LocatedInstance:
        path = ("operator", "instances", ref)
        return self._act("DELETE", LocatedInstance, *path, organisation=organisation, reason=reason)

    def log(self, ref: str, reason: str, *, organisation: str = "") -> LogAnswer:
        path = ("operator", "instances", ref, "log")
        return self._get(LogAnswer, *path, organisation=organisation, reason=reason)

    def events(self, *, after: str = "", limit: int = PAGE, alerts: bool = False) -> EventPage:
        """Events of the server itself, or only alerts; newest first."""
        query = {"after": after, "limit": limit, "alerts": alerts or None}
        return self._get(EventPage, "operator", "events", project=None, **query)

    def queue(self, *, limit: int = PAGE) -> tuple[QueuedOfTenantAnswer, ...]:
        """The launches of every tenant that wait for room, in the order of the queue."""
        return self._get(QueuedOfTenantList, "operator", "queue", project=None, limit=limit).items

    def _acted(self, ref: str, verb: str, body: object, organisation: str) -> LocatedInstance:
        path = ("operator", "instances", ref, verb)
        return self._act("POST", LocatedInstance, *path, body=body, organisation=organisation)
