"""Sign in with a password, an API key or a one-time link; sign out."""

from typing import Final

from teraflock.base.errors import BadInput, TeraflockError
from teraflock.console.answer import Answer, redirect
from teraflock.console.call import PageCall
from teraflock.console.cookies import SESSION
from teraflock.console.page import PREFIX, Pages
from teraflock.tenant.admission import Scope
from teraflock.tenant.session.model import OpenedLink

pages = Pages()
NEXT_CHARACTERS_MAX: Final = 8_000


def safe_next(path: str) -> str:
    """A path of this console to go to, or nothing: never another site."""
    is_own = path.startswith(f"{PREFIX}/") and "\\" not in path and path.isprintable() and path.isascii()
    return path if is_own and len(path) <= NEXT_CHARACTERS_MAX else ""


@pages.get("/sign-in", scope=Scope.PUBLIC)
def show_sign_in(call: PageCall) -> Answer:
    """Ask for a user name and password, or for an API key."""
    provider = call.services.identities.name if call.services.identities else ""
    next = safe_next(call.request.query.text("next") or call.form.text("next"))
    return call.page(
        "sign_in.html", next=next, provider=provider, can_sign_up=call.services.sign_up is not None
    )


@pages.post("/sign-in", scope=Scope.PUBLIC, on_error=show_sign_in)
def sign_in(call: PageCall) -> Answer:
    """Open a session."""
    form, sessions = call.form, call.services.sessions
    user_name = form.text("user_name")
    call.services.limits.tries(call.request.address, user_name)
    if key := form.text("key"):
        made = sessions.sign_in_with_key(key, call.browser)
    elif user_name:
        made = sessions.sign_in(user_name, form.raw("password"), form.text("code"), call.browser)
    else:
        raise BadInput("Enter your user name and password, or an API key")
    call.services.limits.entered(call.request.address)
    return redirect(safe_next(form.text("next")) or f"{PREFIX}/", cookies={SESSION: made.secret})


@pages.get("/links/{link}", scope=Scope.PUBLIC)
def show_link(call: PageCall) -> Answer:
    """Say whom a sign-in link is for. Opening it does not use it: previews of links open them too."""
    opened: OpenedLink | None = None
    try:
        opened = call.services.sessions.look_at_link(call.path["link"])
    except TeraflockError as error:
        call.error = call.error or error
        call.status = 404 if call.status == 200 else call.status
    return call.page("link.html", opened=opened)


@pages.post("/links/{link}", scope=Scope.PUBLIC, on_error=show_link)
def use_link(call: PageCall) -> Answer:
    """Open a session with a link, and set a password if one is given."""
    form, sessions, secret = call.form, call.services.sessions, call.path["link"]
    call.services.limits.tries(call.request.address, "")
    if form.raw("password"):
        with call.services.limits.chooses_name(call.request.address):
            made = sessions.accept_link(secret, form.text("user_name"), form.raw("password"), call.browser)
    else:
        made = sessions.sign_in_with_link(secret, call.browser)
    call.services.limits.entered(call.request.address)
    return redirect(f"{PREFIX}/", cookies={SESSION: made.secret})


@pages.post("/sign-out", scope=Scope.KEY)
def sign_out(call: PageCall) -> Answer:
    """End the session."""
    call.services.sessions.sign_out(call.actor)
    return redirect(f"{PREFIX}/sign-in", cookies={SESSION: ""})
