"""SSH keys of members. New instances get the keys of the member who launches them."""

from teraflock.api.call import Call, cut
from teraflock.api.query import Page
from teraflock.api.route import Routes, Scope
from teraflock.base.filling import filled
from teraflock.tenant.rules import Permission
from teraflock.tenant.ssh_key.model import SshKey
from teraflock.wire.ssh_key import SshKeyAnswer, SshKeyPage, SshKeyRequest

routes = Routes("ssh-keys", scope=Scope.ANYWHERE, read=Permission.KEY_READ, write=Permission.KEY_WRITE)


@routes.get("/v1/ssh-keys")
def list_ssh_keys(call: Call, query: Page) -> SshKeyPage:
    """List your SSH keys. Owners see those of all members."""
    found = call.nouns.tenants.ssh_keys.page(call.actor, after=query.after, limit=query.limit + 1)
    rows, last = cut(found, query.limit)
    return SshKeyPage(items=tuple(map(ssh_key_answer, rows)), next=last.id if last else None)


@routes.post("/v1/ssh-keys", status=201, creates=True, errors=("quota_reached",))
def add_ssh_key(call: Call, body: SshKeyRequest) -> SshKeyAnswer:
    """Add an SSH key of yours. Every instance that you launch from now on accepts it."""
    return ssh_key_answer(call.nouns.tenants.ssh_keys.add(call.actor, body.public_key, body.name))


@routes.delete("/v1/ssh-keys/{ssh_key}")
def remove_ssh_key(call: Call, ssh_key: str) -> SshKeyAnswer:
    """Remove an SSH key. Instances that have it keep it."""
    return ssh_key_answer(call.nouns.tenants.ssh_keys.remove(call.actor, ssh_key))


def ssh_key_answer(key: SshKey) -> SshKeyAnswer:
    return filled(SshKeyAnswer, key)
