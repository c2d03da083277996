"""Sites on the wire."""

from teraflock.base.filling import filled
from teraflock.instance.driver import Capability, MachineType
from teraflock.instance.site.model import SiteCheck, SiteRecord, SiteView
from teraflock.wire.site import MachineTypeAnswer, SiteAnswer, SiteCheckAnswer, SiteRequest


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
