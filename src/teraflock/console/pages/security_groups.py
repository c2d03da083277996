"""Security groups: rules that are added and revoked, and instances that are attached and detached."""

from typing import Final

from teraflock.console.answer import Answer
from teraflock.console.call import PageCall
from teraflock.console.page import Pages
from teraflock.console.pages.network_tabs import (
    MEMBERS_MAX,
    PROJECT,
    PROTOCOLS,
    READ,
    WRITE,
    instance_names,
    needed,
    network_page,
    protocol,
    way,
)
from teraflock.wire.security_group import RuleRequest

pages = Pages()
ALL: Final = f"{PROJECT}/security-groups"
ONE: Final = f"{ALL}/{{group}}"


@pages.get(ALL, **READ)
def list_security_groups(call: PageCall) -> Answer:
    """The security groups of a project."""
    groups = call.client.security_groups.list(instances=False)
    return network_page(call, "security-groups", "networks/groups.html", groups=groups)


@pages.post(ALL, on_error=list_security_groups, **WRITE)
def create_security_group(call: PageCall) -> Answer:
    """Create a group. It lets nothing in until it has rules."""
    made = call.client.security_groups.create(needed(call, "name", "The name of the security group"))
    return call.done(
        call.url("security-groups", made.name), "The security group {name} is created", name=made.name
    )


@pages.get(ONE, **READ)
def show_security_group(call: PageCall) -> Answer:
    """One group: its rules and members."""
    group = call.client.security_groups.get(call.path["group"], instances_max=MEMBERS_MAX)
    return network_page(
        call,
        "security-groups",
        "networks/group.html",
        group=group,
        protocols=PROTOCOLS,
        names=instance_names(call),
    )


@pages.post(f"{ONE}/delete", on_error=show_security_group, **WRITE)
def delete_security_group(call: PageCall) -> Answer:
    """Delete a group that nothing uses."""
    call.client.security_groups.delete(call.path["group"])
    return call.done(
        call.url("security-groups"), "The security group {name} is deleted", name=call.path["group"]
    )


@pages.post(f"{ONE}/rules", on_error=show_security_group, **WRITE)
def allow_traffic(call: PageCall) -> Answer:
    """Add a rule."""
    peer = needed(call, "peer", "The other end")
    request = RuleRequest(
        direction=way(call), protocol=protocol(call), ports=call.form.text("ports"), peer=peer
    )
    call.client.security_groups.allow(call.path["group"], request)
    return call.done(_url(call), "The rule is added. It applies to new connections within two seconds")


@pages.post(f"{ONE}/rules/{{rule}}/revoke", on_error=show_security_group, **WRITE)
def revoke_traffic(call: PageCall) -> Answer:
    """Revoke a rule."""
    call.client.security_groups.revoke(call.path["group"], call.path["rule"])
    return call.done(_url(call), "The rule is revoked. Connections that no other rule allows are cut")


@pages.post(f"{ONE}/instances", on_error=show_security_group, **WRITE)
def attach_security_group(call: PageCall) -> Answer:
    """Put an instance into the group."""
    name = needed(call, "instance", "The name of the instance")
    call.client.security_groups.attach(call.path["group"], name)
    return call.done(_url(call), "{name} is in the group now", name=name)


@pages.post(f"{ONE}/instances/{{instance}}/detach", on_error=show_security_group, **WRITE)
def detach_security_group(call: PageCall) -> Answer:
    """Take an instance out of the group."""
    name = call.path["instance"]
    call.client.security_groups.detach(call.path["group"], name)
    return call.done(_url(call), "{name} is not in the group any more", name=name)


def _url(call: PageCall) -> str:
    return call.url("security-groups", call.path["group"])
