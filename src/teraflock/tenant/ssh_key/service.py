"""SSH keys of members.

Invariants: members add keys only for themselves; owners see all keys and can remove them. A key is added to instances
when they are launched: instances that exist keep the keys that they have.
"""

from teraflock.base.errors import Conflict, NotFound, QuotaReached
from teraflock.base.ids import new_id
from teraflock.base.names import check_key_name
from teraflock.storage.database import Transaction
from teraflock.tenant import rules as permissions
from teraflock.tenant.acts import Acts
from teraflock.tenant.key.service import may_change_all
from teraflock.tenant.model import Actor
from teraflock.tenant.rules import Permission
from teraflock.tenant.ssh_key import rules, store
from teraflock.tenant.ssh_key.model import SshKey


class SshKeyService(Acts):
    def page(self, actor: Actor, *, after: str = "", limit: int) -> tuple[SshKey, ...]:
        """The keys of the actor. Owners see those of all members."""
        permissions.check_held(Permission.KEY_READ, permissions.anywhere(actor))
        member = None if may_change_all(actor) else actor.member_id
        with self._database.read() as tx:
            return store.keys(tx, actor.organisation_id, member, after=after, limit=limit)

    def add(self, actor: Actor, text: str, name: str = "") -> SshKey:
        """Add a key of the actor. Without a name, it gets the comment of the key."""
        permissions.check_held(Permission.KEY_WRITE, permissions.anywhere(actor))
        rules.check_unlimited_for_ssh(actor)
        public_key, fingerprint, comment = rules.parse_public_key(text)
        name = name or comment or fingerprint
        check_key_name(name)

        def work(tx: Transaction) -> SshKey:
            own = store.keys_of(tx, actor.member_id)
            if any(each.fingerprint == fingerprint for each in own):
                raise Conflict("You have this SSH key already", hint="`tera ssh-key list` shows your keys")
            if len(own) >= rules.KEYS_MAX:
                raise QuotaReached(
                    f"A member can have at most {rules.KEYS_MAX} SSH keys",
                    hint="Remove one that you do not use",
                )
            now = self._clock.now()
            made = SshKey(
                id=new_id("ssh", now, self._random_bytes),
                member_id=actor.member_id,
                name=name,
                public_key=public_key,
                fingerprint=fingerprint,
                created_at=now,
            )
            store.put_key(tx, made)
            self._audit.record(tx, actor, "ssh-key.add", made.id, None, name=name, fingerprint=fingerprint)
            return made

        return self._database.write(work)

    def remove(self, actor: Actor, id: str) -> SshKey:
        """New instances do not get the key any more."""
        permissions.check_held(Permission.KEY_WRITE, permissions.anywhere(actor))
        rules.check_unlimited_for_ssh(actor)

        def work(tx: Transaction) -> SshKey:
            found = store.key(tx, actor.organisation_id, id)
            if found is None or not (found.member_id == actor.member_id or may_change_all(actor)):
                raise NotFound("There is no such SSH key", hint="`tera ssh-key list` shows the keys with ids")
            store.remove_key(tx, found.id)
            self._audit.record(
                tx, actor, "ssh-key.remove", found.id, None, name=found.name, member=found.member_id
            )
            return found

        return self._database.write(work)
