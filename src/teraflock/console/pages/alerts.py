"""Alerts about hosts, for operators: what is wrong now, and what happened."""

import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

from teraflock.console.answer import Answer
from teraflock.console.call import PageCall
from teraflock.console.language import Language
from teraflock.console.page import Pages
from teraflock.tenant.admission import Scope
from teraflock.tenant.rules import Permission
from teraflock.wire.event import EventAnswer
from teraflock.words.event import event_text

pages = Pages()
ROWS: Final = 100
READ: Final[Mapping[str, Any]] = {"scope": Scope.INSTALLATION, "may": Permission.HOST_READ}
MESSAGES: Final[Mapping[str, str]] = {
    "host.card-lost": "The card {card} of {host} stopped answering",
    "host.card-back": "The card {card} of {host} answers again",
    "host.xid": "The card {card} of {host} logged an error: Xid {xid}",
    "host.ecc": "The card {card} of {host} has {errors} uncorrectable memory errors",
    "host.hot": "The card {card} of {host} is at {celsius} °C",
    "host.cool": "The card {card} of {host} has cooled down to {celsius} °C",
    "host.clock-off": "The clock of {host} is {seconds} s off",
    "host.clock-right": "The clock of {host} is right again",
    "host.disk-filling": "The disk pool of {host} is {percent} % full",
    "host.disk-limits": "The disk limits of {host}: {limits}",
}
UNKNOWN: Final = {name: "?" for message in MESSAGES.values() for name in re.findall(r"{(\w+)}", message)}
ENDS: Final[Mapping[str, str]] = {
    "host.card-back": "host.card-lost",
    "host.cool": "host.hot",
    "host.clock-right": "host.clock-off",
}
"""Which alert each of these ends."""
LASTING: Final = frozenset(ENDS.values())


@pages.get("/alerts", **READ)
def list_alerts(call: PageCall) -> Answer:
    """Alerts, newest first."""
    return call.page("alerts/list.html", section="alerts", **_listed(call))


@pages.get("/alerts-rows", **READ)
def list_alert_rows(call: PageCall) -> Answer:
    """The rows, requested again every few seconds."""
    return call.part("alerts/rows.html", **_listed(call))


def open_alerts(newest_first: Sequence[EventAnswer]) -> tuple[EventAnswer, ...]:
    """The alerts of a lasting kind that no later event has ended."""
    seen: set[tuple[str, str, str]] = set()
    found = []
    for event in newest_first:
        kind = ENDS.get(event.kind, event.kind)
        thing = (kind, str(event.details.get("host", "")), str(event.details.get("card", "")))
        if kind in LASTING and thing not in seen:
            seen.add(thing)
            if event.kind == kind:
                found.append(event)
    return tuple(found)


def is_good(event: EventAnswer) -> bool:
    return event.kind in ENDS or event.details.get("limits") == "hold"


def sentence(language: Language, event: EventAnswer) -> str:
    """What happened, in the reader's language. Kinds and details that are not known are shown as they are."""
    message = MESSAGES.get(event.kind)
    if message is None:
        return event_text(event)
    return language.text(message, **{**UNKNOWN, **event.details})


def _listed(call: PageCall) -> dict[str, Any]:
    after = call.request.query.text("after")
    page = call.client.operator.events(after=after, limit=ROWS, alerts=True)
    return {
        "page": page,
        "after": after,
        "open": () if after else open_alerts(page.items),
        "sentence": partial(sentence, call.language),
        "is_good": is_good,
    }
