"""Network ACLs: numbered rules at the border of a subnet."""

from typing import Any, Final

from teraflock.base.errors import BadInput
from teraflock.console.answer import Answer
from teraflock.console.call import PageCall
from teraflock.console.page import Pages
from teraflock.console.pages.network_tabs import (
    PROJECT,
    PROTOCOLS,
    READ,
    WRITE,
    needed,
    network_page,
    protocol,
    way,
)
from teraflock.wire.acl import AclRuleRequest

pages = Pages()
ALL: Final = f"{PROJECT}/acls"
ONE: Final = f"{ALL}/{{acl}}"
NUMBER_STEP: Final = 100
"""The form proposes numbers with room between them for later rules."""


@pages.get(ALL, **READ)
def list_acls(call: PageCall) -> Answer:
    """The network ACLs of a project."""
    return network_page(call, "acls", "networks/acls.html", acls=call.client.acls.list())


@pages.post(ALL, on_error=list_acls, **WRITE)
def create_acl(call: PageCall) -> Answer:
    """Create an ACL without rules."""
    made = call.client.acls.create(needed(call, "name", "The name of the ACL"))
    return call.done(call.url("acls", made.name), "The ACL {name} is created", name=made.name)


@pages.get(ONE, **READ)
def show_acl(call: PageCall) -> Answer:
    """One ACL: its rules and subnets."""
    acl = call.client.acls.get(call.path["acl"])
    networks = call.client.networks.list(instances=False)
    free = [
        f"{each.name}/{subnet.name}"
        for each in networks
        for subnet in each.subnets
        if f"{each.name}/{subnet.name}" not in acl.subnets
    ]
    used = max((rule.number for rule in acl.rules), default=0)
    number = (used // NUMBER_STEP + 1) * NUMBER_STEP
    return network_page(
        call, "acls", "networks/acl.html", acl=acl, free=free, number=number, protocols=PROTOCOLS
    )


@pages.post(f"{ONE}/delete", on_error=show_acl, **WRITE)
def delete_acl(call: PageCall) -> Answer:
    """Delete an ACL that guards nothing."""
    call.client.acls.delete(call.path["acl"])
    return call.done(call.url("acls"), "The ACL {name} is deleted", name=call.path["acl"])


@pages.post(f"{ONE}/rules", on_error=show_acl, **WRITE)
def add_acl_rule(call: PageCall) -> Answer:
    """Add a rule with a number."""
    number = call.form.number("number")
    if number is None:
        raise BadInput("The number of the rule is missing", hint="Write a number from 1 to 32766")
    action: Any = "deny" if call.form.text("action") == "deny" else "allow"
    request = AclRuleRequest(
        direction=way(call),
        number=min(number, 1 << 31),
        action=action,
        protocol=protocol(call),
        ports=call.form.text("ports"),
        peer=needed(call, "peer", "The other end"),
    )
    call.client.acls.add(call.path["acl"], request)
    return call.done(_url(call), "Rule {number} is added", number=number)


@pages.post(f"{ONE}/rules/{{direction}}/{{number}}/remove", on_error=show_acl, **WRITE)
def remove_acl_rule(call: PageCall) -> Answer:
    """Remove a rule."""
    number = call.path["number"]
    if not (number.isascii() and number.isdigit() and len(number) < 10):
        raise BadInput("This is not the number of a rule", hint="Use the button on the page")
    call.client.acls.remove(call.path["acl"], call.path["direction"], int(number))
    return call.done(_url(call), "Rule {number} is removed", number=number)


@pages.post(f"{ONE}/attach", on_error=show_acl, **WRITE)
def attach_acl(call: PageCall) -> Answer:
    """Let the ACL guard a subnet."""
    network, subnet = _subnet(call)
    call.client.acls.attach(call.path["acl"], network=network, subnet=subnet)
    return call.done(_url(call), "The ACL guards {subnet} now", subnet=f"{network}/{subnet}")


@pages.post(f"{ONE}/detach", on_error=show_acl, **WRITE)
def detach_acl(call: PageCall) -> Answer:
    """Let the ACL guard a subnet no longer."""
    network, subnet = _subnet(call)
    call.client.acls.detach(call.path["acl"], network=network, subnet=subnet)
    return call.done(_url(call), "The ACL does not guard {subnet} any more", subnet=f"{network}/{subnet}")


def _subnet(call: PageCall) -> tuple[str, str]:
    network, _, subnet = needed(call, "subnet", "The subnet").partition("/")
    return network, subnet or "default"


def _url(call: PageCall) -> str:
    return call.url("acls", call.path["acl"])
