"""Sites: engines and cloud accounts. For operators."""

from teraflock.api.call import Call
from teraflock.api.route import Routes, RouteWork, Scope
from teraflock.base.filling import filled
from teraflock.instance.driver import Capability, MachineType
from teraflock.instance.site.model import SiteCheck, SiteRecord, SiteView
from teraflock.tenant.rules import Permission
from teraflock.wire.site import MachineTypeAnswer, SiteAnswer, SiteCheckAnswer, SiteList, SiteRequest

routes = Routes("sites", scope=Scope.INSTALLATION, read=Permission.HOST_READ, write=Permission.HOST_WRITE)


@routes.get("/v1/sites")
def list_sites(call: Call) -> SiteList:
    """List all sites and whether they answer."""
    return SiteList(items=tuple(map(site_answer, call.nouns.sites.sites())))


@routes.post("/v1/sites", status=201, creates=True, errors=("conflict", "bad_input", "unknown_name"))
def add_site(call: Call, body: SiteRequest) -> SiteAnswer:
    """Define a site. The server opens it within seconds."""
    return site_answer(call.nouns.sites.add(call.actor, record_from(body)))


@routes.get("/v1/sites/{site}")
def show_site(call: Call, site: str) -> SiteAnswer:
    """Show one site, with the machine types that can be rented there."""
    return site_answer(call.nouns.sites.site(site), types=True)


@routes.delete("/v1/sites/{site}", errors=("conflict", "refused"))
def remove_site(call: Call, site: str) -> None:
    """Remove a site that has no instances. Sites defined in the settings are removed there."""
    call.nouns.sites.remove(call.actor, site)


@routes.post("/v1/sites/{site}/check", may=Permission.HOST_READ, work=RouteWork.LONG)
def check_site(call: Call, site: str) -> SiteCheckAnswer:
    """Check that a site answers, and what it has. Changes nothing."""
    return check_answer(call.nouns.sites.check(site))


@routes.put("/v1/sites/{site}/organisations/{organisation}", errors=("refused",))
def allow_site(call: Call, site: str, organisation: str) -> SiteAnswer:
    """Let an organisation rent machines at a site."""
    id = call.nouns.tenants.organisations.show(call.actor, organisation).id
    return site_answer(call.nouns.sites.allow(call.actor, site, id, may=True))


@routes.delete("/v1/sites/{site}/organisations/{organisation}", errors=("refused",))
def deny_site(call: Call, site: str, organisation: str) -> SiteAnswer:
    """Stop letting an organisation rent machines at a site. Its machines there keep running."""
    id = call.nouns.tenants.organisations.show(call.actor, organisation).id
    return site_answer(call.nouns.sites.allow(call.actor, site, id, may=False))


def record_from(request: SiteRequest) -> SiteRecord:
    return SiteRecord(name=request.name, kind=request.kind, options=request.options)


def site_answer(view: SiteView, *, types: bool = False) -> SiteAnswer:
    driver = view.driver
    state = "broken" if view.problem else "ready" if driver is not None and view.since else "unknown"
    return filled(
        SiteAnswer,
        view,
        name=view.record.name,
        kind=view.record.kind,
        defined_in="database" if view.record.is_kept else "settings",
        state=state,
        simulated=driver is not None and driver.simulated,
        rents=driver is not None and Capability.PLACEMENT not in driver.capabilities,
        capabilities=tuple(sorted(driver.capabilities)) if driver else (),
        open=view.for_all,
        options=view.record.options,
        types=tuple(map(_type_answer, driver.types())) if driver and types else (),
        types_at=getattr(driver, "types_at", None),  # only rented machines come from a provider
    )


def check_answer(check: SiteCheck) -> SiteCheckAnswer:
    return filled(SiteCheckAnswer, check, ok=not check.problem)


def _type_answer(each: MachineType) -> MachineTypeAnswer:
    return filled(MachineTypeAnswer, each, prices_micros_per_hour=each.prices)
