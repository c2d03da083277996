"""API keys."""

from teraflock.client.noun import PAGE, Noun, pages
from teraflock.wire.key import KeyAnswer, KeyMade, KeyPage, KeyRequest


class Keys(Noun):
    in_project = False

    def page(self, *, after: str = "", limit: int = PAGE) -> KeyPage:
        return self._get(KeyPage, "keys", after=after, limit=limit)

    def list(self) -> tuple[KeyAnswer, ...]:
        return pages(lambda after: self.page(after=after))

    def create(self, request: KeyRequest, *, idempotency_key: str = "") -> KeyMade:
        return self._create(KeyMade, "keys", body=request, idempotency_key=idempotency_key)

    def revoke(self, key: str) -> KeyAnswer:
        return self._act("DELETE", KeyAnswer, "keys", key)
