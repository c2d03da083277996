"""SSH keys of members."""

from teraflock.client.noun import PAGE, Noun, pages
from teraflock.wire.ssh_key import SshKeyAnswer, SshKeyPage, SshKeyRequest


class SshKeys(Noun):
    in_project = False

    def page(self, *, after: str = "", limit: int = PAGE) -> SshKeyPage:
        return self._get(SshKeyPage, "ssh-keys", after=after, limit=limit)

    def list(self) -> tuple[SshKeyAnswer, ...]:
        return pages(lambda after: self.page(after=after))

    def add(self, request: SshKeyRequest, *, idempotency_key: str = "") -> SshKeyAnswer:
        return self._create(SshKeyAnswer, "ssh-keys", body=request, idempotency_key=idempotency_key)

    def remove(self, id: str) -> SshKeyAnswer:
        return self._act("DELETE", SshKeyAnswer, "ssh-keys", id)
