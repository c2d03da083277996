"""API keys. A secret is shown only once, when the key is created."""

from datetime import timedelta

from teraflock.api.call import Call, cut
from teraflock.api.query import Page
from teraflock.api.route import Routes, Scope
from teraflock.base.filling import filled
from teraflock.tenant.model import (
    ApiKey,
    MadeKey,
    Role,
)
from teraflock.tenant.rules import Permission
from teraflock.wire.key import KeyAnswer, KeyMade, KeyPage, KeyRequest

routes = Routes("keys", scope=Scope.ANYWHERE, read=Permission.KEY_READ, write=Permission.KEY_WRITE)


@routes.get("/v1/keys")
def list_keys(call: Call, query: Page) -> KeyPage:
    """List your API keys. Owners see all keys of the organisation."""
    found = call.nouns.tenants.keys.page(call.actor, after=query.after, limit=query.limit + 1)
    rows, last = cut(found, query.limit)
    return KeyPage(items=tuple(map(key_answer, rows)), next=last.id if last else None)


@routes.post("/v1/keys", status=201, creates=True, secret=True, errors=("ambiguous_name", "suspended"))
def make_key(call: Call, body: KeyRequest) -> KeyMade:
    """Create a key that allows no more than the one in use.

    The response contains its secret, which is shown only once.
    """
    made = call.nouns.tenants.keys.make(
        call.actor,
        body.name,
        member=body.member,
        project=body.project,
        role_max=Role(body.role_max) if body.role_max else None,
        life=timedelta(days=body.days) if body.days else None,
    )
    return key_made(made)


@routes.delete("/v1/keys/{key}", errors=("ambiguous_name",))
def revoke_key(call: Call, key: str) -> KeyAnswer:
    """Revoke a key. It stops working with the next request."""
    return key_answer(call.nouns.tenants.keys.revoke(call.actor, key))


def key_answer(key: ApiKey) -> KeyAnswer:
    return filled(
        KeyAnswer, key, project=key.project_id, role_max=key.role_max.value if key.role_max else None
    )


def key_made(made: MadeKey) -> KeyMade:
    return KeyMade(key=key_answer(made.key), secret=made.secret)
