"""What the pages about networks share: their tabs, who may open them, and the names of instances for their forms."""

from collections.abc import Mapping
from typing import Any, Final

from teraflock.base.errors import BadInput
from teraflock.console.answer import Answer
from teraflock.console.call import PageCall
from teraflock.tenant.admission import Scope
from teraflock.tenant.rules import Permission

PROJECT: Final = "/projects/{project}"
TABS: Final = (
    ("networks", "Subnets"),
    ("security-groups", "Security groups"),
    ("acls", "ACLs"),
    ("open-ports", "Ports and addresses"),
    ("balancers", "Load balancers"),
    ("reach", "Who can reach whom"),
)
READ: Final[Mapping[str, Any]] = {"scope": Scope.PROJECT, "may": Permission.NETWORK_READ}
WRITE: Final[Mapping[str, Any]] = {"scope": Scope.PROJECT, "may": Permission.NETWORK_WRITE}
PEER: Final[Mapping[str, Any]] = {"scope": Scope.PROJECT, "may": Permission.NETWORK_PEER}
PROTOCOLS: Final = ("tcp", "udp", "icmp", "any")
NAMES_MAX: Final = 100
"""How many instances a form proposes. Others can be typed."""
MEMBERS_MAX: Final = 100
"""How many members of a group are listed."""


def network_page(call: PageCall, tab: str, template: str, **values: Any) -> Answer:
    return call.page(template, section="networks", tabs=TABS, tab=tab, form=call.form, **values)


def instance_names(call: PageCall) -> list[str]:
    """Names that forms propose. Empty if the reader may not see instances or may not change networks."""
    if not (call.may(Permission.INSTANCE_READ) and call.may(Permission.NETWORK_WRITE)):
        return []
    return [each.name for each in call.client.instances.page(limit=NAMES_MAX).items]


def way(call: PageCall) -> Any:
    """The direction of a rule in a form."""
    return "out" if call.form.text("direction") == "out" else "in"


def protocol(call: PageCall) -> Any:
    word = call.form.text("protocol")
    return word if word in PROTOCOLS else "any"


def needed(call: PageCall, name: str, what: str) -> str:
    """A field that must not be empty."""
    text = call.form.text(name)
    if not text:
        raise BadInput(f"{what} is missing", hint="Fill in the field and send the form again")
    return text
