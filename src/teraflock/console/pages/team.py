"""The team: members and roles, API keys, quotas, the audit log. SSH keys are in ssh_keys.py."""

from collections.abc import Mapping
from typing import Any, Final

from teraflock.base.errors import BadInput, TeraflockError
from teraflock.console.answer import Answer
from teraflock.console.call import PageCall
from teraflock.console.page import Pages
from teraflock.tenant.admission import Scope
from teraflock.tenant.rules import Permission
from teraflock.wire.console import ConsoleLinkRequest
from teraflock.wire.key import KeyRequest
from teraflock.wire.member import MemberRequest, RoleChange

pages = Pages()
ROLES: Final = ("member", "viewer", "billing", "owner")
AUDIT_ROWS: Final = 50
TABS: Final = (
    ("members", "Members", "/team", Permission.MEMBER_READ),
    ("keys", "API keys", "/team/keys", Permission.KEY_READ),
    ("ssh_keys", "SSH keys", "/team/ssh-keys", Permission.KEY_READ),
    ("quotas", "Quotas", "/team/quotas", Permission.USAGE_READ),
    ("audit", "Audit log", "/team/audit", Permission.AUDIT_READ),
)
CHANGE: Final[Mapping[str, Any]] = {"scope": Scope.ANYWHERE, "may": Permission.MEMBER_WRITE}


@pages.get("/team", scope=Scope.KEY)
def list_members(call: PageCall) -> Answer:
    """The members of the organisation, with an invitation that was just created."""
    members = call.client.members.list() if call.may(Permission.MEMBER_READ) else ()
    projects = {each.id: each.name for each in call.client.projects.list()}
    return team_page(call, "members", members=members, projects=projects, roles=ROLES, invitation="")


@pages.post("/team/members", on_error=list_members, **CHANGE)
def add_member(call: PageCall) -> Answer:
    """Add a member, and show the link to send to them."""
    form = call.form
    made = call.client.members.add(
        MemberRequest(name=form.text("name"), role=_role(form.text("role")), project=form.text("project"))
    )
    return _invited(call, made.name)


@pages.post("/team/members/{member}/invite", on_error=list_members, **CHANGE)
def invite_member(call: PageCall) -> Answer:
    """Show a new sign-in link for a member."""
    return _invited(call, call.path["member"])


@pages.post("/team/members/{member}/role", on_error=list_members, **CHANGE)
def set_role(call: PageCall) -> Answer:
    """Change the role of a member in the whole organisation or in one project."""
    changed = call.client.members.set_role(
        call.path["member"], RoleChange(role=_role(call.form.text("role")), project=call.form.text("project"))
    )
    return call.done(call.at("team"), "The role of {name} is changed", name=changed.name)


@pages.post("/team/members/{member}/remove", on_error=list_members, **CHANGE)
def remove_member(call: PageCall) -> Answer:
    """Remove a member with all keys and sessions."""
    call.client.members.remove(call.path["member"])
    return call.done(call.at("team"), "The member is removed; their keys and sessions do not work any more")


@pages.get("/team/keys", scope=Scope.ANYWHERE, may=Permission.KEY_READ)
def list_keys(call: PageCall) -> Answer:
    """The API keys of the reader; owners see all."""
    return _keys(call)


@pages.post("/team/keys", scope=Scope.ANYWHERE, may=Permission.KEY_WRITE, on_error=list_keys)
def make_key(call: PageCall) -> Answer:
    """Create a key. This page shows its secret once, so it is not a redirection."""
    form = call.form
    if not form.text("name"):
        raise BadInput("A key needs a name", hint="Name it after its user, such as `laptop` or `ci`")
    request = KeyRequest(
        name=form.text("name"),
        project=form.text("project"),
        role_max=_role(form.text("role_max")) if form.text("role_max") else None,
        days=form.number("days"),
    )
    return _keys(call, secret=call.client.keys.create(request).secret)


@pages.post("/team/keys/{key}/rotate", scope=Scope.ANYWHERE, may=Permission.KEY_WRITE, on_error=list_keys)
def rotate_key(call: PageCall) -> Answer:
    """Create a key with the same limits, and revoke the old one."""
    client = call.client
    old = next((each for each in client.keys.list() if each.id == call.path["key"]), None)
    if old is None or old.revoked_at:
        raise BadInput("This key is not valid any more", hint="Create a new key instead")
    days = max(1, (old.expires_at - call.now).days) if old.expires_at else None
    request = KeyRequest(
        name=old.name, member=old.member_id, project=old.project, role_max=old.role_max, days=days
    )
    secret = client.keys.create(request).secret
    client.keys.revoke(old.id)
    return _keys(call, secret=secret)


@pages.post("/team/keys/{key}/revoke", scope=Scope.ANYWHERE, may=Permission.KEY_WRITE, on_error=list_keys)
def revoke_key(call: PageCall) -> Answer:
    """Revoke a key."""
    revoked = call.client.keys.revoke(call.path["key"])
    return call.done(call.at("team", "keys"), "The key {name} is revoked", name=revoked.name)


@pages.get("/team/quotas", scope=Scope.ANYWHERE, may=Permission.USAGE_READ)
def show_quotas(call: PageCall) -> Answer:
    """What each project uses, and how much it may use."""
    projects = call.client.projects.list()
    usage = [(each, found) for each in projects if (found := _usage(call, each.id))]
    whole = next((found.organisation for _, found in usage if found.organisation), None)
    return team_page(call, "quotas", usage=usage, whole=whole)


@pages.get("/team/audit", scope=Scope.ANYWHERE, may=Permission.AUDIT_READ)
def show_audit(call: PageCall) -> Answer:
    """Who did what, newest first."""
    after = call.request.query.text("after")
    return team_page(
        call, "audit", entries=call.client.audit.page(after=after, limit=AUDIT_ROWS), after=after
    )


def team_page(call: PageCall, tab: str, **values: Any) -> Answer:
    tabs = [(name, title, path) for name, title, path, may in TABS if call.may(may)]
    return call.page(f"team/{tab}.html", section="team", tab=tab, tabs=tabs, **values)


def _invited(call: PageCall, member: str) -> Answer:
    link = call.client.console.make_link(ConsoleLinkRequest(member=member))
    members = call.client.members.list()
    name = next((each.name for each in members if each.id == link.member_id), member)
    return team_page(
        call,
        "members",
        members=members,
        projects={each.id: each.name for each in call.client.projects.list()},
        roles=ROLES,
        invitation=call.origin + link.path,
        invited=name,
    )


def _keys(call: PageCall, secret: str = "") -> Answer:
    client = call.client
    members = (
        {each.id: each.name for each in client.members.list()} if call.may(Permission.MEMBER_READ) else {}
    )
    keys = [each for each in client.keys.list() if not each.revoked_at]
    return team_page(
        call, "keys", keys=keys, members=members, projects=client.projects.list(), roles=ROLES, secret=secret
    )


def _usage(call: PageCall, project: str) -> Any:
    try:
        return call.client.quotas.usage(project)
    except TeraflockError:
        return None


def _role(text: str) -> Any:
    if text not in ROLES:
        raise BadInput("Choose a role", hint=f"One of {', '.join(ROLES)}")
    return text
