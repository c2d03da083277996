"""The reader's own account: password, second factor, sessions."""

import base64
from typing import Any, Final
from urllib.parse import quote

from teraflock.base.errors import BadInput
from teraflock.console.answer import Answer
from teraflock.console.call import PageCall
from teraflock.console.cookies import OIDC
from teraflock.console.page import Pages
from teraflock.tenant.admission import Scope
from teraflock.tenant.session.rules import TOTP_BYTES

pages = Pages()
SESSIONS_MAX: Final = 20


@pages.get("/account", scope=Scope.KEY)
def show_account(call: PageCall) -> Answer:
    """Who the reader is, and how they sign in."""
    login = call.services.sessions.login_of(call.actor)
    secret = (
        call.form.text("totp_secret") or base64.b32encode(call.services.random_bytes(TOTP_BYTES)).decode()
    )
    label = quote(f"Teraflock:{login.user_name if login else call.actor.member_name}")
    return call.page(
        "account.html",
        section="account",
        login=login,
        sessions=call.services.sessions.own(call.actor, limit=SESSIONS_MAX),
        totp_secret=secret,
        totp_address=f"otpauth://totp/{label}?secret={secret}&issuer=Teraflock",
        whoami=call.client.whoami(),
        **_identities(call),
    )


def _identities(call: PageCall) -> dict[str, Any]:
    """The identities of the reader, and one that waits to be connected."""
    service = call.services.identities
    if service is None:
        return {"provider": ""}
    connecting = service.look(call.request.cookies.get(OIDC, ""))
    return {
        "provider": service.name,
        "identities": service.identities_of(call.actor),
        "connecting": connecting,
    }


@pages.post("/account/password", scope=Scope.KEY, on_error=show_account)
def set_password(call: PageCall) -> Answer:
    """Set the user name and the password."""
    form = call.form
    call.services.limits.tries(call.request.address, call.actor.member_id)
    if form.raw("password") != form.raw("again"):
        raise BadInput("The two passwords differ", hint="Type the same password twice")
    with call.services.limits.chooses_name(call.request.address):
        call.services.sessions.set_password(
            call.actor, form.text("user_name"), form.raw("password"), form.raw("current")
        )
    return call.done(call.at("account"), "The password is set. All other sessions are ended")


@pages.post("/account/totp", scope=Scope.KEY, on_error=show_account)
def set_totp(call: PageCall) -> Answer:
    """Turn the second factor on or off, after the password."""
    form, sessions = call.form, call.services.sessions
    call.services.limits.tries(call.request.address, call.actor.member_id)
    sessions.check_password(call.actor, form.raw("current"))
    if form.text("off"):
        sessions.set_totp(call.actor, "", "")
        return call.done(call.at("account"), "The second factor is off")
    if not form.text("totp_secret"):
        raise BadInput("The secret is missing", hint="Reload the page and try again")
    sessions.set_totp(call.actor, form.text("totp_secret"), form.text("code"))
    return call.done(call.at("account"), "The second factor is on")


@pages.post("/account/sessions/{session}/revoke", scope=Scope.KEY, on_error=show_account)
def revoke_session(call: PageCall) -> Answer:
    """End another session."""
    call.client.console.revoke(call.path["session"])
    return call.done(call.at("account"), "The session is ended")
