"""The audit log as text."""

from typing import TYPE_CHECKING, Final

from teraflock.words.table import Field, Fields
from teraflock.words.text import details_text, time_text

if TYPE_CHECKING:
    from teraflock.wire.audit import AuditAnswer

_SHOWN: Final = ("name", "member")  # shown in their own columns
FIELDS: "Final[Fields[AuditAnswer]]" = (
    Field("AT (UTC)", lambda each: time_text(each.at)),
    Field("MEMBER", lambda each: each.member or each.member_id, flexible=True, worth=7),
    Field("ACTION", lambda each: each.action),
    Field("SUBJECT", lambda each: str(each.details.get("name") or each.subject), flexible=True, worth=8),
    Field("DETAILS", lambda each: _details_text(each), flexible=True, worth=5),
    Field("KEY", lambda each: each.key_id, worth=3),
)


def _details_text(entry: "AuditAnswer") -> str:
    return details_text({name: value for name, value in entry.details.items() if name not in _SHOWN})
