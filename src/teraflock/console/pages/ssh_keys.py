"""SSH keys of members: every instance that a member launches gets their keys."""

from teraflock.base.errors import BadInput
from teraflock.console.answer import Answer
from teraflock.console.call import PageCall
from teraflock.console.page import Pages
from teraflock.console.pages.team import ROWS, member_names, team_page
from teraflock.tenant.admission import Scope
from teraflock.tenant.rules import Permission
from teraflock.wire.ssh_key import SshKeyRequest

pages = Pages()


@pages.get("/team/ssh-keys", scope=Scope.ANYWHERE, may=Permission.KEY_READ)
def list_ssh_keys(call: PageCall) -> Answer:
    """The SSH keys of the reader; owners see all."""
    after = call.request.query.text("after")
    page = call.client.ssh_keys.page(after=after, limit=ROWS)
    names = member_names(call, (each.member_id for each in page.items))
    return team_page(call, "ssh_keys", keys=page.items, members=names, after=after, next=page.next)


@pages.post("/team/ssh-keys", scope=Scope.ANYWHERE, may=Permission.KEY_WRITE, on_error=list_ssh_keys)
def add_ssh_key(call: PageCall) -> Answer:
    """Add a key of the reader."""
    if not call.form.text("public_key"):
        raise BadInput("Paste a public SSH key", hint="Such as the content of `~/.ssh/id_ed25519.pub`")
    made = call.client.ssh_keys.add(
        SshKeyRequest(public_key=call.form.text("public_key")[:8192], name=call.form.text("name")[:100])
    )
    return call.done(
        call.at("team", "ssh-keys"), "Your new instances accept the SSH key {name}", name=made.name
    )


@pages.post(
    "/team/ssh-keys/{ssh_key}/remove",
    scope=Scope.ANYWHERE,
    may=Permission.KEY_WRITE,
    on_error=list_ssh_keys,
)
def remove_ssh_key(call: PageCall) -> Answer:
    """Remove a key."""
    removed = call.client.ssh_keys.remove(call.path["ssh_key"])
    return call.done(
        call.at("team", "ssh-keys"),
        "The SSH key {name} is removed. Instances that have it keep it",
        name=removed.name,
    )
