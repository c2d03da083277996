"""Dividing cards, for the edges. A loop carries it out: see `reconcile/slices.py`."""

from collections.abc import Sequence

from teraflock.base.errors import Conflict, NotFound
from teraflock.base.quantities import count_text
from teraflock.fleet.card import store as cards
from teraflock.fleet.model import Gpu, Host
from teraflock.fleet.service import found_host, own_host
from teraflock.fleet.slicing import store
from teraflock.fleet.slicing.model import Slicing, SlicingView
from teraflock.fleet.slicing.rules import address_of, checked_profiles
from teraflock.fleet.store import lock_hosts
from teraflock.storage.database import Transaction
from teraflock.tenant.audit.acting import AuditedService
from teraflock.tenant.model import Actor


class SlicingService(AuditedService):
    def of_host(self, ref: str) -> tuple[SlicingView, ...]:
        with self._database.read() as tx:
            host = found_host(tx, ref)
            return tuple(view for view in store.views(tx) if view.slicing.host_id == host.id)

    def divide(self, actor: Actor, ref: str, card: str, profiles: Sequence[str]) -> None:
        """Divide a free card into slices, or make it whole again. Until that is done, no instance gets it."""

        def work(tx: Transaction) -> None:
            host = own_host(tx, ref)
            lock_hosts(tx, [host.id])
            host = own_host(tx, ref)
            address, gpu = _card(host, store.of_host(tx, host.id), card)
            wanted = checked_profiles(gpu, profiles)
            _check_free(host.gpus, address)
            slicing = Slicing(
                host_id=host.id, address=address, gpu=gpu, profiles=wanted, asked_at=self._clock.now()
            )
            store.put(tx, slicing)
            cards.withhold(tx, host.id, address)
            self._audit.record(
                tx, actor, "host.slice", host.id, name=host.name, card=address, profiles=" ".join(wanted)
            )

        self._database.write_with_locks(work)


def _card(host: Host, known: Sequence[Slicing], ref: str) -> tuple[str, str]:
    """The address and GPU model of a card, by its number or address. `known` has cards that lost all their slices."""
    found = {each.address: each.gpu for each in known}
    found |= {address_of(card.slot): card.gpu.partition(":")[0] for card in host.gpus}
    addresses = sorted(found)
    address = addresses[int(ref)] if ref.isdecimal() and int(ref) < len(addresses) else ref.lower()
    if address not in found:
        raise NotFound(
            f"The host `{host.name}` has no card `{ref[:40]}`",
            hint=f"Its cards: {', '.join(f'{n} ({each})' for n, each in enumerate(addresses)) or 'none'}",
        )
    return address, found[address]


def _check_free(gpus: Sequence[Gpu], address: str) -> None:
    held = [card for card in gpus if address_of(card.slot) == address and card.instance_id is not None]
    if held:
        holders = count_text(len({card.instance_id for card in held}), "instance")
        raise Conflict(
            f"The card is in use by {holders}",
            hint="Stop or delete them first: `tera ps --all` lists them",
        )
