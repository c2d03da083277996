"""What operators ask: instances of every tenant, and the state of organisations."""

from typing import Final

from teraflock.client.transport import Transport, path_of
from teraflock.wire.event import EventPage
from teraflock.wire.instance import LogAnswer
from teraflock.wire.operator import LocatedInstance, LocatedPage, StartByOperator, StopByOperator
from teraflock.wire.organisation import OrganisationAnswer, OrganisationRename, OrganisationStateChange

PAGE: Final = 200
EVERY: Final = "operator"


class Operator(Transport):
    def any_instances(
        self, *, organisation: str = "", host: str = "", state: str = "", after: str = "", limit: int = PAGE
    ) -> LocatedPage:
        query = self.in_project(organisation=organisation, host=host, state=state, after=after, limit=limit)
        return self.get(path_of(EVERY, "instances"), LocatedPage, **query)

    def any_instance(self, ref: str, *, organisation: str = "") -> LocatedInstance:
        query = self.in_project(organisation=organisation)
        return self.get(path_of(EVERY, "instances", ref), LocatedInstance, **query)

    def stop_any(self, ref: str, reason: str, *, organisation: str = "") -> LocatedInstance:
        return self._act_on_any(ref, "stop", StopByOperator(reason=reason), organisation)

    def start_any(
        self, ref: str, reason: str, *, organisation: str = "", release_only: bool = False
    ) -> LocatedInstance:
        body = StartByOperator(reason=reason, release_only=release_only)
        return self._act_on_any(ref, "start", body, organisation)

    def delete_any(self, ref: str, reason: str, *, organisation: str = "") -> LocatedInstance:
        query = self.in_project(organisation=organisation, reason=reason)
        return self.act("DELETE", path_of(EVERY, "instances", ref), LocatedInstance, **query)

    def log_of_any(self, ref: str, reason: str, *, organisation: str = "") -> LogAnswer:
        query = self.in_project(organisation=organisation, reason=reason)
        return self.get(path_of(EVERY, "instances", ref, "log"), LogAnswer, **query)

    def server_events(self, *, after: str = "", limit: int = PAGE) -> EventPage:
        """Events of the server itself, newest first."""
        return self.get(path_of(EVERY, "events"), EventPage, after=after, limit=limit)

    def organisation(self, ref: str) -> OrganisationAnswer:
        return self.get(path_of("organisations", ref), OrganisationAnswer)

    def set_organisation_state(self, ref: str, change: OrganisationStateChange) -> OrganisationAnswer:
        return self.act("PUT", path_of("organisations", ref, "state"), OrganisationAnswer, change)

    def rename_organisation(self, ref: str, change: OrganisationRename) -> OrganisationAnswer:
        return self.act("PUT", path_of("organisations", ref, "name"), OrganisationAnswer, change)

    def delete_organisation(self, ref: str, reason: str, *, force: bool = False) -> OrganisationAnswer:
        path = path_of("organisations", ref)
        return self.act("DELETE", path, OrganisationAnswer, reason=reason, force=force or None)

    def _act_on_any(self, ref: str, verb: str, body: object, organisation: str) -> LocatedInstance:
        query = self.in_project(organisation=organisation)
        return self.act("POST", path_of(EVERY, "instances", ref, verb), LocatedInstance, body, **query)
