"""Sign in with an identity provider (OpenID Connect), and connect an identity to an account.

The return from the provider is the one `GET` that opens a session. Only the browser that started the sign-in has the
cookie it needs, and the cookie works once.
"""

from typing import Final

from teraflock.base.errors import NotFound
from teraflock.console.answer import Answer, redirect
from teraflock.console.call import PageCall
from teraflock.console.cookies import OIDC, SESSION
from teraflock.console.page import PREFIX, Pages
from teraflock.console.pages.account import show_account
from teraflock.console.pages.sign_in import safe_next, show_sign_in
from teraflock.tenant.admission import Scope
from teraflock.tenant.identity.model import Returned
from teraflock.tenant.identity.service import IdentityService

pages = Pages()
NEXT_CHARACTERS_MAX: Final = 1_000
"""The place to return to is in a cookie, which browsers limit to 4 kB. Of a longer one, only the path is kept."""


@pages.get("/sign-in/oidc", scope=Scope.PUBLIC, long=True, on_error=show_sign_in)
def begin_oidc(call: PageCall) -> Answer:
    """Go to the identity provider."""
    call.services.limits.tries(call.request.address, "")
    next = safe_next(call.request.query.text("next"))
    if len(next) > NEXT_CHARACTERS_MAX:
        next = next.partition("?")[0]
    address, kept = _identities(call).begin(next)
    return redirect(address, cookies={OIDC: kept})


@pages.get("/sign-in/oidc/return", scope=Scope.PUBLIC, long=True, on_error=show_sign_in)
def finish_oidc(call: PageCall) -> Answer:
    """Come back from the identity provider."""
    call.services.limits.tries(call.request.address, "")
    query = call.request.query
    returned = Returned(
        state=query.text("state"),
        code=query.text("code"),
        error=query.text("error"),
        issuer=query.text("iss"),
    )
    arrival = _identities(call).arrive(call.request.cookies.get(OIDC, ""), returned, call.browser)
    # Who starts in the console's account page is signed in already, and only the return was counted.
    call.services.limits.entered(call.request.address, requests=1 if arrival.is_connecting else 2)
    if arrival.session is not None:
        return _entered(arrival.session.secret, arrival.next)
    if arrival.is_connecting:
        return redirect(f"{PREFIX}/account", cookies={OIDC: arrival.sealed})
    page = call.page("oidc.html", arrival=arrival)
    return Answer(status=page.status, body=page.body, cookies={**page.cookies, OIDC: arrival.sealed})


@pages.post("/sign-in/oidc", scope=Scope.PUBLIC, on_error=show_sign_in)
def choose_oidc(call: PageCall) -> Answer:
    """Sign in as the chosen member."""
    call.services.limits.tries(call.request.address, "")
    kept = call.request.cookies.get(OIDC, "")
    session, next = _identities(call).choose(kept, call.form.text("member"), call.browser)
    call.services.limits.entered(call.request.address)
    return _entered(session.secret, next)


@pages.get("/account/oidc", scope=Scope.KEY, long=True, on_error=show_account)
def begin_connecting(call: PageCall) -> Answer:
    """Go to the identity provider, to connect an identity."""
    address, kept = _identities(call).begin("", is_connecting=True)
    return redirect(address, cookies={OIDC: kept})


@pages.post("/account/oidc", scope=Scope.KEY, on_error=show_account)
def connect_oidc(call: PageCall) -> Answer:
    """Connect the identity, after the reader agreed."""
    _identities(call).connect(call.actor, call.request.cookies.get(OIDC, ""))
    done = call.done(call.at("account"), "The identity is connected. You can sign in with it")
    return Answer(status=done.status, headers=done.headers, cookies={**done.cookies, OIDC: ""})


@pages.post("/account/oidc/remove", scope=Scope.KEY, on_error=show_account)
def disconnect_oidc(call: PageCall) -> Answer:
    """Disconnect all identities."""
    _identities(call).disconnect(call.actor)
    return call.done(call.at("account"), "No identity signs in to this account any more")


def _entered(secret: str, next: str) -> Answer:
    return redirect(safe_next(next) or f"{PREFIX}/", cookies={SESSION: secret, OIDC: ""})


def _identities(call: PageCall) -> IdentityService:
    if call.services.identities is None:
        raise NotFound("This server has no identity provider", hint="Sign in in another way")
    return call.services.identities
