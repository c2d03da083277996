"""API keys of members: never wider than the key that creates them, and revoked permanently.

Invariants:
- members create keys for themselves; those who may change all members of the organisation also create keys for
  others; only operators create keys for operators;
- the secret is only in the response that creates the key;
- members see and revoke their own keys, within the limits of the key in use; those who may change all members see
  and revoke all keys.
"""

from collections.abc import Callable
from datetime import datetime, timedelta

from msgspec.structs import replace

from teraflock.base.errors import Forbidden, NotFound, ambiguous_name
from teraflock.base.ids import new_id
from teraflock.base.names import check_key_name
from teraflock.storage.database import Transaction
from teraflock.tenant import rules
from teraflock.tenant.acts import Acts
from teraflock.tenant.key import store
from teraflock.tenant.key.rules import check_life, key_within
from teraflock.tenant.key.secret import digest_of, new_secret
from teraflock.tenant.member.service import member_in
from teraflock.tenant.model import Actor, ApiKey, KeyId, MadeKey, Member, Role
from teraflock.tenant.organisation.rules import check_active
from teraflock.tenant.project.service import OPTIONS_MAX, project_in
from teraflock.tenant.rules import Permission


class KeyService(Acts):
    def page(self, actor: Actor, *, after: str = "", limit: int) -> tuple[ApiKey, ...]:
        """Includes revoked keys, for anyone who looks for a leak."""
        rules.check_held(Permission.KEY_READ, rules.anywhere(actor))
        member = None if may_change_all(actor) else actor.member_id
        with self._database.read() as tx:
            return store.keys(tx, actor.organisation_id, member, actor.project_id, after=after, limit=limit)

    def make(
        self,
        actor: Actor,
        name: str,
        *,
        member: str = "",
        project: str = "",
        role_max: Role | None = None,
        life: timedelta | None = None,
    ) -> MadeKey:
        """Limits that are left out are those of the key in use."""
        rules.check_held(Permission.KEY_WRITE, rules.anywhere(actor))
        check_key_name(name)
        check_life(life)

        def work(tx: Transaction) -> MadeKey:
            holder = holder_of_new(tx, actor, member, "keys")
            check_active(tx, holder.organisation_id)
            project_id = self._project_id(tx, actor, holder, project)
            now = self._clock.now()
            key = ApiKey(
                id=KeyId(new_id("key", now, self._random_bytes)),
                member_id=holder.id,
                name=name,
                project_id=project_id,
                role_max=role_max or actor.role_max,
                created_at=now,
                expires_at=now + life if life else actor.expires_at,
                revoked_at=None,
            )
            return self._made(tx, actor, holder, key)

        return self._database.write(work)

    def revoke(self, actor: Actor, id: str) -> ApiKey:
        """The key is invalid from the next request on. Revoking it again changes nothing."""
        rules.check_held(Permission.KEY_WRITE, rules.anywhere(actor))

        def work(tx: Transaction) -> ApiKey:
            key, holder = self._accessible(tx, actor, id)
            if key.revoked_at is not None:
                return key
            now = self._clock.now()
            store.revoke_key(tx, key.id, now)
            self._audit.record_in(
                tx,
                holder.organisation_id,
                actor,
                "key.revoke",
                key.id,
                key.project_id,
                name=key.name,
                member=holder.id,
            )
            return replace(key, revoked_at=now)

        return self._database.write(work)

    def _project_id(self, tx: Transaction, actor: Actor, holder: Member, ref: str) -> str:
        if not ref:
            return actor.project_id
        project = project_in(tx, actor, ref)
        if project.organisation_id != holder.organisation_id:
            raise NotFound("There is no such project")
        return project.id

    def _made(self, tx: Transaction, actor: Actor, holder: Member, key: ApiKey) -> MadeKey:
        if limit := key_within(actor, key.project_id, key.role_max, key.expires_at):
            raise Forbidden(
                f"The key in use may only create keys that {limit}",
                hint="A new key cannot have wider limits than the key that creates it",
            )
        made = _kept(tx, key, self._random_bytes)
        self._audit.record_in(
            tx, holder.organisation_id, actor, "key.make", key.id, key.project_id, name=key.name, member=holder.id,
            role_max=key.role_max, expires_at=key.expires_at.isoformat() if key.expires_at else None,
        )  # fmt: skip
        return made

    def _accessible(self, tx: Transaction, actor: Actor, id: str) -> tuple[ApiKey, Member]:
        key = store.key(tx, actor.organisation_id, id)
        if key is None and actor.is_operator:
            key = store.key_of_any_organisation(tx, id)
        if key is None:
            key = self._named(tx, actor, id)
        if key is None or not (key.member_id == actor.member_id or may_change_all(actor)):
            raise NotFound(
                "There is no such key", hint="`tera key list` shows the keys that this key may see"
            )
        holder = member_in(tx, actor, key.member_id)
        if key_within(actor, key.project_id, key.role_max, actor.expires_at):
            raise Forbidden(
                "The key in use may not revoke a key with wider limits",
                hint="Use that key itself, or one without limits",
            )
        return key, holder

    def _named(self, tx: Transaction, actor: Actor, name: str) -> ApiKey | None:
        """The only active key with this name that the actor may see."""
        member = None if may_change_all(actor) else actor.member_id
        options = store.keys_by_name(
            tx, "" if actor.is_operator else actor.organisation_id, member, name, limit=OPTIONS_MAX
        )
        if len(options) > 1:
            raise ambiguous_name("key", name, (f"{each.id} ({owner})" for each, owner in options))
        return options[0][0] if options else None


def holder_of_new(tx: Transaction, actor: Actor, ref: str, what: str) -> Member:
    """The member whom a new key or link is for. An empty `ref` means the actor."""
    member = member_in(tx, actor, ref or actor.member_id)
    if member.id == actor.member_id:
        return member
    if Permission.MEMBER_WRITE not in rules.in_organisation(actor, member.organisation_id):
        raise Forbidden(
            f"This key may create {what} only for its own member",
            hint=f"An owner of the organisation can create {what} for others",
        )
    return member


def may_change_all(actor: Actor) -> bool:
    return Permission.MEMBER_WRITE in rules.in_organisation(actor, actor.organisation_id)


def first_key(
    tx: Transaction, member: Member, now: datetime, random_bytes: Callable[[int], bytes]
) -> MadeKey:
    """An unlimited key for a member who has none yet."""
    key = ApiKey(
        id=KeyId(new_id("key", now, random_bytes)),
        member_id=member.id,
        name="first",
        project_id="",
        role_max=None,
        created_at=now,
        expires_at=None,
        revoked_at=None,
    )
    return _kept(tx, key, random_bytes)


def _kept(tx: Transaction, key: ApiKey, random_bytes: Callable[[int], bytes]) -> MadeKey:
    """Store a key with the digest of its secret."""
    secret = new_secret(key.id, random_bytes)
    store.put_key(tx, key, digest_of(secret))
    return MadeKey(key=key, secret=secret)
