"""Converters of instances. The Jupyter token is included only for those who may log in."""

from typing import Any, Final

import msgspec

from teraflock.api.convert.shape import shape_answer, wish_from
from teraflock.api.query import InstancePageQuery
from teraflock.base.filling import filled
from teraflock.instance.driver import Ran
from teraflock.instance.model import (
    JUPYTER_PORT,
    SSH_PORT,
    Access,
    Instance,
    InstanceFilter,
    Log,
    PlaceWish,
    Preemptible,
    RentalSpec,
    RestartPolicy,
    View,
)
from teraflock.instance.orders import Order, RentalWish, bid_and_limit
from teraflock.instance.rules import next_operation
from teraflock.instance.states import Phase
from teraflock.network.ipv6 import six
from teraflock.network.model import DEFAULT
from teraflock.network.walls import is_ours
from teraflock.wire.instance import (
    AlternativeRequest,
    CandidateAnswer,
    ExecAnswer,
    GpuAnswer,
    HoldAnswer,
    InstanceAnswer,
    InstancePage,
    InterfaceAnswer,
    JupyterAnswer,
    LaunchRequest,
    LogAnswer,
    RentalAnswer,
    SshAnswer,
    UserDataAnswer,
)

SSH_USER: Final = "root"  # as set up in the images


def _bid_and_limit(request: AlternativeRequest | LaunchRequest) -> dict[str, Any]:
    bid, limit = bid_and_limit(
        request.mode,
        rents=bool(request.type or request.provider),
        bid=request.bid_micros_per_hour,
        limit=request.max_price_micros_per_hour,
    )
    return {"bid_micros_per_hour": bid, "price_limit_micros_per_hour": limit}


def _wish_from(request: AlternativeRequest) -> RentalWish:
    return filled(RentalWish, request, shape=wish_from(request.shape), **_bid_and_limit(request))


def order_from(request: LaunchRequest) -> Order:
    return filled(
        Order,
        request,
        shape=wish_from(request.shape),
        access=Access(request.access),
        **_bid_and_limit(request),
        alternatives=tuple(_wish_from(each) for each in request.alternatives),
        restart_policy=RestartPolicy(request.restart_policy) if request.restart_policy else None,
        place=filled(PlaceWish, request),
        copies_data=False,
    )


PAGES_KEPT: Final = 512  # a few kB each
_PAGES: Final[dict[tuple[str, int, bool], tuple[tuple[View, ...], str | None, bytes]]] = {}


def instance_page(views: tuple[View, ...], after: str | None, *, enters: bool) -> bytes:
    """A page as JSON. The last content of each page is kept: most pages do not change."""
    key = (views[0].instance.id if views else "", len(views), enters)
    kept = _PAGES.get(key)
    if kept is not None and kept[0] == views and kept[1] == after:
        return kept[2]
    page = InstancePage(items=tuple(instance_answer(view, enters=enters) for view in views), next=after)
    content = msgspec.json.encode(page)
    if len(_PAGES) >= PAGES_KEPT:
        _PAGES.clear()
    _PAGES[key] = (views, after, content)
    return content


def instance_answer(view: View, *, enters: bool) -> InstanceAnswer:
    """`enters`: whether the actor may log in to the instance."""
    instance = view.instance
    progress = instance.progress
    return InstanceAnswer(  # not `filled`, which takes twice as long: a page has hundreds
        id=instance.id,
        name=instance.name,
        project_id=instance.project_id,
        state=instance.phase,
        wanted=instance.wanted,
        operation=progress.operation
        if progress
        else next_operation(instance),  # requested, perhaps not started yet
        step=progress.step or None if progress else None,
        problem=instance.problem,
        notice=instance.notice,
        hold=HoldAnswer(by="operator", reason=instance.hold.reason, since=instance.hold.since)
        if instance.hold
        else None,
        shape=shape_answer(instance.shape),
        gpus=tuple(GpuAnswer(slot=card.slot, kind=card.kind, gpu=card.gpu) for card in instance.held.gpus),
        image=instance.image,
        data=tuple(each.name for each in instance.spec.data),
        access=instance.access,
        command=instance.spec.command,
        exit_code=instance.exit_code,
        user_data=_user_data(instance),
        time_limit_seconds=instance.spec.time_limit_seconds,
        stop_at=instance.stop_at,
        delete_when_done=instance.spec.delete_when_done,
        graphics=instance.spec.graphics,
        labels=instance.labels,
        host=None if view.rented else view.host_name,
        private_address=instance.address,
        interfaces=_interfaces(instance),
        ssh=_ssh(view),
        jupyter=_jupyter(view) if enters else None,
        simulated=view.simulated,
        created_at=instance.created_at,
        created_by=instance.created_by,
        running_since=instance.running_since,
        site=instance.site,
        rental=_rental(view),
        mode=instance.spec.mode,
        restart_policy=instance.spec.restart_policy,
        doing=progress.doing if progress else "",
        **_preemptible(instance.preemptible),
    )


def _preemptible(how: Preemptible | None) -> dict[str, Any]:
    if how is None:
        return {}
    bids = how.bid_micros_per_hour is not None
    return {
        "bid_micros_per_hour": how.bid_micros_per_hour,
        "card_micros_per_hour": how.card_micros_per_hour if bids else None,
        "leaving_at": how.leaving_at,
        "waits_for_cards": how.waits_since is not None,
    }


def _rental(view: View) -> RentalAnswer | None:
    found, rental = view.rented, view.instance.spec.rental
    if found is None:
        return None
    candidates = _candidates(rental) if rental else ()
    return filled(
        RentalAnswer,
        found,
        candidates=candidates,
        candidate=view.instance.candidate % len(candidates) if candidates else 0,
    )


def _candidates(rental: RentalSpec) -> tuple[CandidateAnswer, ...]:
    return tuple(
        filled(
            CandidateAnswer, each, region=region, max_price_micros_per_hour=each.price_limit_micros_per_hour
        )
        for each in rental.choices
        for region in each.regions
    )


def _user_data(instance: Instance) -> UserDataAnswer | None:
    if not instance.spec.user_data:
        return None
    waits = instance.user_data_waits
    return UserDataAnswer(state="running" if waits else "done", exit_code=instance.user_data_exit_code)


def filter_from(query: InstancePageQuery) -> InstanceFilter:
    pairs = tuple((key, value) for key, _, value in (text.partition("=") for text in query.label))
    phases = tuple(Phase(state) for state in query.state)
    return InstanceFilter(phases=phases, labels=pairs, name=query.name)


def exec_answer(ran: Ran) -> ExecAnswer:
    return ExecAnswer(
        exit_code=ran.exit_code,
        stdout=ran.stdout.decode("utf-8", "replace"),
        stderr=ran.stderr.decode("utf-8", "replace"),
        timed_out=ran.timed_out,
    )


def log_answer(log: Log) -> LogAnswer:
    return filled(LogAnswer, log)


def _endpoint(view: View, guest_port: int) -> tuple[str, int] | None:
    """The address and port that forward to a port of the guest."""
    if view.rented is not None:
        return view.rented.endpoints.get(guest_port)
    ports = {port.guest_port: port.host_port for port in view.instance.held.ports}
    if guest_port not in ports or view.host_address is None:
        return None
    return view.host_address, ports[guest_port]


def _interfaces(instance: Instance) -> tuple[InterfaceAnswer, ...]:
    names = [each.name for each in instance.spec.networks] or [DEFAULT]
    addresses = (instance.address, *instance.more_addresses)
    return tuple(
        InterfaceAnswer(network=name, address=address, ipv6_address=six(address) if is_ours(address) else "")
        for name, address in zip(names, addresses, strict=False)
        if address is not None
    )


def _ssh(view: View) -> SshAnswer | None:
    found = _endpoint(view, SSH_PORT)
    if found is None:
        return None
    user = view.rented.user if view.rented else SSH_USER
    return SshAnswer(host=found[0], port=found[1], user=user, host_key=view.instance.host_key)


def _jupyter(view: View) -> JupyterAnswer | None:
    token, through_ssh = view.instance.spec.jupyter_token, view.rented is not None
    if through_ssh:
        found = ("127.0.0.1", JUPYTER_PORT) if _endpoint(view, SSH_PORT) else None
    else:
        found = _endpoint(view, JUPYTER_PORT)
    if found is None or not token:
        return None
    url = f"http://{_bracketed(found[0])}:{found[1]}/lab?token={token}"
    return JupyterAnswer(url=url, through_ssh=through_ssh)


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host
