"""Published ports of a project."""

from teraflock.client.noun import Noun
from teraflock.wire.published_port import PublishedPortAnswer, PublishedPortList, PublishRequest


class PublishedPorts(Noun):
    def list(self, *, instance: str = "") -> tuple[PublishedPortAnswer, ...]:
        """All of them, or those of one instance."""
        more = {"instance": instance} if instance else {}
        return self._get(PublishedPortList, "published-ports", **more).items

    def publish(self, request: PublishRequest, *, idempotency_key: str = "") -> PublishedPortAnswer:
        return self._create(
            PublishedPortAnswer, "published-ports", body=request, idempotency_key=idempotency_key
        )

    def unpublish(self, id: str) -> None:
        self._send("DELETE", "published-ports", id)
