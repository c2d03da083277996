"""SSH keys of members on the wire."""

from teraflock.tenant.ssh_key.model import SshKey
from teraflock.wire.ssh_key import SshKeyAnswer


def ssh_key_answer(key: SshKey) -> SshKeyAnswer:
    return SshKeyAnswer(
        id=key.id,
        member_id=key.member_id,
        name=key.name,
        public_key=key.public_key,
        fingerprint=key.fingerprint,
        created_at=key.created_at,
    )
