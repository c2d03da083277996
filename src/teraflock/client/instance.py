"""Instances: launch, change, read, and wait for them."""

from collections.abc import Collection, Iterator, Mapping
from typing import Final

from teraflock.base.errors import NotFound, Refused, Unavailable
from teraflock.client.noun import PAGE, Noun, pages
from teraflock.client.transport import path_of
from teraflock.wire.event import EventPage
from teraflock.wire.instance import (
    ChangeRequest,
    ExecAnswer,
    ExecRequest,
    InstanceAnswer,
    InstancePage,
    LaunchAnswer,
    LaunchRequest,
    LogAnswer,
    ResizeRequest,
)

ARCHIVE_SECONDS_MAX: Final = 60.0  # without receiving a byte
POLL_SECONDS: Final = 0.05  # at first; grows by half each time
POLL_SECONDS_MAX: Final = 1.0
EXEC_SECONDS_MORE: Final = 15.0  # for the network, on top of what the command may take


class NotReached(Refused):
    """The instance settled in another state than the one you waited for."""

    code = "not_reached"
    remedy = "`tera show NAME` has the reason."


class TookTooLong(Unavailable):
    """The wait ended before the instance reached the state. The server continues to work on it."""

    code = "took_too_long"
    remedy = "Wait again, or follow it with `tera events --follow`."


class Instances(Noun):
    def page(
        self,
        *,
        after: str = "",
        limit: int = PAGE,
        gone: bool = False,
        states: tuple[str, ...] = (),
        labels: Mapping[str, str] | None = None,
        name: str = "",
    ) -> InstancePage:
        """Instances in one of the states, with all of the labels, and with a name that matches `web-*`."""
        pairs = tuple(f"{key}={value}" for key, value in (labels or {}).items())
        return self._get(
            InstancePage, "instances",
            after=after, limit=limit, gone=gone or None, state=states, label=pairs, name=name,
        )  # fmt: skip

    def list(
        self,
        *,
        gone: bool = False,
        states: tuple[str, ...] = (),
        labels: Mapping[str, str] | None = None,
        name: str = "",
    ) -> tuple[InstanceAnswer, ...]:
        return pages(lambda after: self.page(after=after, gone=gone, states=states, labels=labels, name=name))

    def get(self, ref: str) -> InstanceAnswer:
        return self._get(InstanceAnswer, "instances", ref)

    def launch(self, request: LaunchRequest, *, idempotency_key: str = "") -> LaunchAnswer:
        return self._create(LaunchAnswer, "instances", body=request, idempotency_key=idempotency_key)

    def start(self, ref: str) -> InstanceAnswer:
        return self._acted(ref, "start")

    def stop(self, ref: str) -> InstanceAnswer:
        return self._acted(ref, "stop")

    def restart(self, ref: str) -> InstanceAnswer:
        return self._acted(ref, "restart")

    def resize(self, ref: str, request: ResizeRequest) -> InstanceAnswer:
        return self._acted(ref, "resize", request)

    def delete(self, ref: str) -> InstanceAnswer:
        return self._act("DELETE", InstanceAnswer, "instances", ref)

    def acknowledge(self, ref: str) -> InstanceAnswer:
        """Clear the notice of an instance."""
        return self._acted(ref, "acknowledge")

    def exec(self, ref: str, request: ExecRequest) -> ExecAnswer:
        """Run a command in an instance. The request is never retried."""
        content = self._transport.request(
            "POST",
            path_of("instances", ref, "exec"),
            body=request,
            query=self._query({}),
            again=False,
            seconds_max=request.seconds_max + EXEC_SECONDS_MORE,
        )
        return self._transport.decoded(content, ExecAnswer)

    def log(self, ref: str, *, source: str = "") -> LogAnswer:
        """The log of the command, `console` or `user-data`. Default: the command's, or the console without one."""
        return self._get(LogAnswer, "instances", ref, "log", source=source)

    def change(self, ref: str, request: ChangeRequest) -> InstanceAnswer:
        return self._act("PATCH", InstanceAnswer, "instances", ref, body=request)

    def archive(self, ref: str, path: str) -> Iterator[bytes]:
        """A file or folder of its disk as tar, in pieces as they arrive."""
        query = self._query({"path": path})
        return self._transport.pieces(path_of("instances", ref, "archive"), query, ARCHIVE_SECONDS_MAX)

    def events(
        self, ref: str, *, after: str = "", limit: int = PAGE, newest_first: bool = False
    ) -> EventPage:
        return self._get(
            EventPage, "instances", ref, "events", after=after, limit=limit, newest_first=newest_first or None
        )

    def wait_until(
        self, ref: str, states: str | Collection[str], *, seconds_max: float = 600.0
    ) -> InstanceAnswer:
        """Poll until it is in one of the states with no operation in progress. Raises `NotReached` if it cannot be."""
        wanted = {states} if isinstance(states, str) else set(states)
        waited, pause = 0.0, POLL_SECONDS
        while True:
            seen = self.get(ref)
            if seen.state in wanted and seen.operation is None:
                return seen
            if seen.state in ("failed", "gone"):
                raise NotReached(
                    f"`{seen.name}` is {seen.state}: {seen.problem or 'it was deleted'}",
                    hint=f"See what happened with `tera events --instance {seen.name}`",
                )
            if waited >= seconds_max:
                raise TookTooLong(
                    f"`{seen.name}` is still {seen.state} after {seconds_max:g} s",
                    hint="The server continues to work on it. Check again later",
                )
            self._transport.pause(pause)
            waited += pause
            pause = min(pause * 1.5, POLL_SECONDS_MAX)

    def wait_until_gone(self, ref: str, *, seconds_max: float = 600.0) -> None:
        """Poll until nothing has this name or id."""
        waited, pause = 0.0, POLL_SECONDS
        while waited < seconds_max:
            try:
                if self.get(ref).state == "gone":
                    return
            except NotFound:
                return
            self._transport.pause(pause)
            waited += pause
            pause = min(pause * 1.5, POLL_SECONDS_MAX)
        raise TookTooLong(
            f"`{ref}` still exists after {seconds_max:g} s",
            hint="The server continues to delete it. Check again later",
        )

    def _acted(self, ref: str, verb: str, body: object = None) -> InstanceAnswer:
        return self._act("POST", InstanceAnswer, "instances", ref, verb, body=body)
