"""SSH keys of members on the wire."""

from teraflock.base.filling import filled
from teraflock.tenant.ssh_key.model import SshKey
from teraflock.wire.ssh_key import SshKeyAnswer


def ssh_key_answer(key: SshKey) -> SshKeyAnswer:
    return filled(SshKeyAnswer, key)
