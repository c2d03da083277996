"""Sign-in to the console: one-time links and open sessions."""

from teraflock.client.noun import PAGE, Noun, pages
from teraflock.wire.console import (
    ConsoleLinkMade,
    ConsoleLinkRequest,
    ConsoleSessionAnswer,
    ConsoleSessionPage,
)


class ConsoleAccess(Noun):
    in_project = False

    def make_link(self, request: ConsoleLinkRequest, *, idempotency_key: str = "") -> ConsoleLinkMade:
        return self._create(
            ConsoleLinkMade, "console", "links", body=request, idempotency_key=idempotency_key
        )

    def page(self, *, after: str = "", limit: int = PAGE) -> ConsoleSessionPage:
        return self._get(ConsoleSessionPage, "console", "sessions", after=after, limit=limit)

    def list(self) -> tuple[ConsoleSessionAnswer, ...]:
        return pages(lambda after: self.page(after=after))

    def revoke(self, session: str) -> ConsoleSessionAnswer:
        return self._act("DELETE", ConsoleSessionAnswer, "console", "sessions", session)
