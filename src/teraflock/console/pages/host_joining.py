"""Join a host: the command to copy, and the hosts that joined since."""

from typing import Final

from teraflock.base.ids import new_id
from teraflock.console.answer import Answer
from teraflock.console.call import PageCall
from teraflock.console.page import Pages
from teraflock.tenant.admission import Scope
from teraflock.tenant.rules import Permission
from teraflock.wire.host import InvitationRequest
from teraflock.words.host import join_command

pages = Pages()
JOINED_MAX: Final = 20


@pages.get("/hosts-join", scope=Scope.INSTALLATION, may=Permission.HOST_WRITE)
def show_join(call: PageCall) -> Answer:
    """The form."""
    return call.page("hosts/join.html", section="hosts", form=call.form, made=None, command="", since="")


@pages.post("/hosts-join", scope=Scope.INSTALLATION, may=Permission.HOST_WRITE, on_error=show_join)
def invite_host(call: PageCall) -> Answer:
    """Show the command once. Its token is not stored, so the answer is the page itself."""
    form = call.form
    request = InvitationRequest(
        name=form.text("name"), address=form.text("address"), trusted_wire=bool(form.text("trusted_wire"))
    )
    made = call.client.hosts.invite(request)
    since = new_id("hst", call.now, bytes)
    return call.page(
        "hosts/join.html", section="hosts", form=form, made=made, command=join_command(made), since=since
    )


@pages.get("/hosts-joined", scope=Scope.INSTALLATION, may=Permission.HOST_READ)
def list_joined(call: PageCall) -> Answer:
    """Hosts that joined after the invitation: their ids sort by time."""
    since = call.request.query.text("since") or new_id("hst", call.now, bytes)
    page = call.client.hosts.page(after=since, limit=JOINED_MAX)
    return call.part("hosts/joined.html", hosts=page.items)
