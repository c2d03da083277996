"""Events as text. `--json` and the API have all fields of an event."""

from typing import TYPE_CHECKING, Final

from teraflock.words.table import Field, Fields
from teraflock.words.text import details_text, time_text

if TYPE_CHECKING:
    from teraflock.wire.event import EventAnswer

_IN_COLUMNS: Final = frozenset({"name", "from", "to"})
_LEFT_OUT: Final = frozenset({"sequence", "generation", "asked_at_us", "labels", "member", "host", "region"})
FIELDS: "Final[Fields[EventAnswer]]" = (
    Field("AT (UTC)", lambda each: time_text(each.at)),
    Field("KIND", lambda each: each.kind),
    Field("SUBJECT", lambda each: str(each.details.get("name") or each.subject), flexible=True, worth=8),
    Field("DETAILS", lambda each: _details_text(each), flexible=True, worth=7),
)


def event_text(event: "EventAnswer") -> str:
    """What happened, in one line: a change of state, or the kind of the event with its details."""
    before, after = event.details.get("from"), event.details.get("to")
    if after and after != before:
        return f"{before} → {after}" if before else str(after)
    return f"{event.kind} {_details_text(event)}".strip()


def _details_text(event: "EventAnswer") -> str:
    """The change of state, followed by the details that matter to people."""
    before, after = event.details.get("from"), event.details.get("to")
    way = [f"{before or 'nothing'} → {after}"] if after and after != before else []
    shown = {
        key: value
        for key, value in event.details.items()
        if key not in _IN_COLUMNS | _LEFT_OUT and value not in ("", 0, "{}", None, "on-demand")
    }
    return "  ".join([*way, details_text(shown)]).strip()
