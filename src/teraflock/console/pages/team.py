"""The team: members and roles, API keys, quotas, the audit log. SSH keys are in ssh_keys.py."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from teraflock.base.errors import BadInput, TeraflockError
from teraflock.console.answer import Answer
from teraflock.console.call import PageCall
from teraflock.console.page import Pages
from teraflock.tenant.admission import Scope
from teraflock.tenant.rules import Permission
from teraflock.wire.console import ConsoleLinkRequest
from teraflock.wire.key import KeyAnswer, KeyRequest
from teraflock.wire.member import MemberRequest, RoleChange
from teraflock.wire.quota import OrganisationUsage

pages = Pages()
ROLES: Final = ("member", "viewer", "billing", "owner")
ROWS: Final = 50
QUOTA_ROWS: Final = 20
KEY_PAGES_MAX: Final = 5
"""Of 200 keys each: how far a page looks for keys that are not revoked."""
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
    return _members(call)


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
    id = call.path["key"]
    following = client.keys.page(after=id[:-1]).items  # begins with it: keys are sorted by their ids
    old = next((each for each in following if each.id == id), None)
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
    """What the organisation uses, and how much it may use. Each project follows when it is scrolled to."""
    after = call.request.query.text("after")
    page = call.client.projects.page(after=after, limit=QUOTA_ROWS)
    return team_page(
        call, "quotas", projects=page.items, whole=_whole_usage(call), after=after, next=page.next
    )


@pages.get("/projects/{project}/quota", scope=Scope.PROJECT, may=Permission.USAGE_READ)
def show_project_quota(call: PageCall) -> Answer:
    """What a project uses, and how much it may use."""
    return call.part("team/quota.html", used=call.client.quotas.usage(call.project.id))


@pages.get("/team/audit", scope=Scope.ANYWHERE, may=Permission.AUDIT_READ)
def show_audit(call: PageCall) -> Answer:
    """Who did what, newest first."""
    after = call.request.query.text("after")
    return team_page(call, "audit", entries=call.client.audit.page(after=after, limit=ROWS), after=after)


def team_page(call: PageCall, tab: str, **values: Any) -> Answer:
    tabs = [(name, title, path) for name, title, path, may in TABS if call.may(may)]
    return call.page(f"team/{tab}.html", section="team", tab=tab, tabs=tabs, **values)


def _invited(call: PageCall, member: str) -> Answer:
    link = call.client.console.make_link(ConsoleLinkRequest(member=member))
    name = member_names(call, [link.member_id]).get(link.member_id, member)
    return _members(call, invitation=call.origin + link.path, invited=name)


def _members(call: PageCall, **values: str) -> Answer:
    after = call.request.query.text("after")
    seen = call.may(Permission.MEMBER_READ)
    return team_page(
        call,
        "members",
        members=call.client.members.page(after=after, limit=ROWS) if seen else None,
        projects={each.id: each.name for each in call.projects},
        roles=ROLES,
        after=after,
        **{"invitation": "", "invited": "", **values},
    )


def member_names(call: PageCall, ids: Iterable[str]) -> Mapping[str, str]:
    """The names of members by id. Empty if the reader may not see members."""
    return call.services.tenants.members.names(set(ids)) if call.may(Permission.MEMBER_READ) else {}


def _keys(call: PageCall, secret: str = "") -> Answer:
    after = call.request.query.text("after")
    keys, next = _valid_keys(call, after)
    return team_page(
        call,
        "keys",
        keys=keys,
        members=member_names(call, (each.member_id for each in keys)),
        projects=call.projects,
        roles=ROLES,
        secret=secret,
        after=after,
        next=next,
    )


def _valid_keys(call: PageCall, after: str) -> tuple[list[KeyAnswer], str | None]:
    """Keys that are not revoked, and where the next page begins."""
    found: list[KeyAnswer] = []
    for _ in range(KEY_PAGES_MAX):
        page = call.client.keys.page(after=after)
        found += [each for each in page.items if not each.revoked_at]
        if len(found) > ROWS:
            return found[:ROWS], found[ROWS - 1].id
        if page.next is None:
            return found, None
        after = page.next
    return found, after


def _whole_usage(call: PageCall) -> OrganisationUsage | None:
    """None: the reader may see only some projects."""
    try:
        return call.client.quotas.organisation_usage(call.actor.organisation_id)
    except TeraflockError:
        return None


def _role(text: str) -> Any:
    if text not in ROLES:
        raise BadInput("Choose a role", hint=f"One of {', '.join(ROLES)}")
    return text
