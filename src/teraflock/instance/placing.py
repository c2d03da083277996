"""Turns the words of an order about its hosts into the terms of the placement, and explains a placement.

`explain` decides with the functions that a launch uses, but locks and writes nothing.
"""

from collections.abc import Mapping, Sequence

import msgspec

from teraflock.base.errors import BadInput
from teraflock.base.size import Size
from teraflock.fleet import store as fleet
from teraflock.fleet.model import HostId, HostKind
from teraflock.fleet.placement import PlaceDecision, PlaceTerms, Policy, Spread, decide
from teraflock.instance import store
from teraflock.instance.claims import rooms_for
from teraflock.instance.model import PlaceWish
from teraflock.instance.orders import Order
from teraflock.instance.volume.launch import host_of, volumes_meant
from teraflock.storage.database import Transaction
from teraflock.tenant.model import ProjectId


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """Where the instances of an order would run now, and why not elsewhere."""

    need: Size
    instances: int
    decision: PlaceDecision


def terms_of(
    tx: Transaction, project: ProjectId, order: Order, *, site: str = "", queued_id: str = ""
) -> PlaceTerms:
    host_id = _host_id(tx, order.host) if order.host else None
    return wish_terms(
        tx,
        project,
        order.place,
        labels=order.labels,
        host_id=host_of(volumes_meant(tx, project, order.volumes), host_id) if order.volumes else host_id,
        site=site or order.site,
        queued_id=queued_id,
    )


def wish_terms(
    tx: Transaction,
    project: ProjectId,
    wish: PlaceWish,
    *,
    labels: Mapping[str, str],
    host_id: HostId | None = None,
    site: str = "",
    queued_id: str = "",
    itself: str = "",
) -> PlaceTerms:
    """`labels` are those of the new instances: they may have to stay apart from each other. `itself` is the id of an
    instance that moves, which need not stay apart from itself."""
    return PlaceTerms(
        host_id=host_id,
        site=site,
        labels=tuple(sorted(wish.on.items())),
        avoid=_avoided(tx, project, wish.not_with, itself),
        apart=any(_has(labels, word) for word in wish.not_with),
        spread=Spread(wish.spread) if wish.spread else None,
        pack=wish.pack,
        together=wish.together,
        queued_id=queued_id,
    )


def explain(tx: Transaction, policy: Policy, need: Size, count: int, terms: PlaceTerms) -> Explanation:
    rooms = sorted(rooms_for(tx, policy, terms, ready=False), key=lambda room: room.name)
    return Explanation(need=need, instances=count, decision=decide(rooms, need, count, terms))


def _avoided(tx: Transaction, project: ProjectId, words: Sequence[str], itself: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for word in words:
        key, is_label, value = word.partition("=")
        if is_label:
            hosts = store.hosts_with_label(tx, project, key, value, but=itself)
        else:
            view = store.find(tx, project, word)
            if view is None and not itself:
                raise BadInput(
                    f"There is no instance `{word[:80]}` to keep away from",
                    hint="`--not-with` takes the name of an instance, or a label as `KEY=VALUE`",
                )
            hosts = [view.instance.host_id] if view and view.instance.host_id else []
        found |= dict.fromkeys(hosts, f"has an instance of `--not-with {word}`")
    return found


def _has(labels: Mapping[str, str], word: str) -> bool:
    key, is_label, value = word.partition("=")
    return bool(is_label) and labels.get(key) == value


def _host_id(tx: Transaction, ref: str) -> HostId:
    host = fleet.host(tx, ref)
    if host is None or host.kind != HostKind.OWN:
        raise BadInput(f"There is no host `{ref}`", hint="Without `--host`, Teraflock chooses one")
    return host.id
