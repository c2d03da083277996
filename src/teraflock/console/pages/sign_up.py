"""Sign up: create an organisation of your own, if the operator allows it."""

from teraflock.base.errors import NotFound
from teraflock.console.answer import Answer, redirect
from teraflock.console.call import PageCall
from teraflock.console.cookies import SESSION
from teraflock.console.page import PREFIX, Pages
from teraflock.tenant.admission import Scope
from teraflock.tenant.sign_up.service import SignUpService

pages = Pages()


@pages.get("/sign-up", scope=Scope.PUBLIC)
def show_sign_up(call: PageCall) -> Answer:
    """Ask for a user name and a password."""
    return call.page("sign_up.html", gift=_service(call).gift())


@pages.post("/sign-up", scope=Scope.PUBLIC, on_error=show_sign_up)
def sign_up(call: PageCall) -> Answer:
    """Create the organisation and sign in. Only attempts that could succeed count as sign-ups."""
    form, service, limits = call.form, _service(call), call.services.limits
    limits.tries(call.request.address, "")
    service.check(form.text("user_name"), form.raw("password"))
    limits.signs_up(call.request.address)
    with limits.chooses_name(call.request.address):
        made = service.sign_up(form.text("user_name"), form.raw("password"), call.browser)
    return redirect(f"{PREFIX}/", cookies={SESSION: made.secret})


def _service(call: PageCall) -> SignUpService:
    if call.services.sign_up is None:
        raise NotFound("There is no such page", hint="Ask the operator of this server for an invitation")
    return call.services.sign_up
