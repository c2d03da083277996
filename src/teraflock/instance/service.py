"""The instance service for the edges. Each act writes what is wanted, claims what it needs, and wakes the loops.

It calls no engine. Only `guests` and the deletion of a snapshot do.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime

from msgspec.structs import replace

from teraflock.base.clock import Clock
from teraflock.base.errors import BadInput, QuotaReached, Refused
from teraflock.base.names import check_place
from teraflock.base.size import Size
from teraflock.dataset import store as datasets
from teraflock.fleet import store as fleet
from teraflock.fleet.memory import FleetMemory
from teraflock.fleet.model import Host
from teraflock.fleet.placement import Policy
from teraflock.image import store as images
from teraflock.instance import launching, store
from teraflock.instance.bid.model import ReadPrices, no_prices
from teraflock.instance.bid.service import BidService
from teraflock.instance.changes import Admits, InstanceChanges
from teraflock.instance.claims import (
    NoCapacity,
    check_host_could,
    check_possible,
    check_quota,
    take_back,
    take_more,
)
from teraflock.instance.driver import Capability, MachineType
from teraflock.instance.engines import Engines
from teraflock.instance.guest.service import GuestService
from teraflock.instance.lookup import cannot, check_at_rest, found, found_or_deleted, is_at_rest
from teraflock.instance.model import (
    Hold,
    Instance,
    InstanceFilter,
    InstanceId,
    Operation,
    RentalChoice,
    RentalSpec,
    Request,
    View,
)
from teraflock.instance.orders import Order, ShapeWish, changed_shape, check, check_labels
from teraflock.instance.output import store as outputs
from teraflock.instance.placing import Explanation, explain
from teraflock.instance.providing import own_first
from teraflock.instance.queue.look import UsedBy
from teraflock.instance.queue.model import QueuedLaunch
from teraflock.instance.queue.service import QueueService
from teraflock.instance.region import move_host
from teraflock.instance.rentable import Rentable
from teraflock.instance.renting import choose
from teraflock.instance.rules import asked_at, end_of, holding, started, withdrawn
from teraflock.instance.snapshot.service import SnapshotService
from teraflock.instance.states import ENDED, Phase, Wanted
from teraflock.instance.volume.service import VolumeService
from teraflock.storage.database import Database, Row, Transaction
from teraflock.tenant.model import Actor, OrganisationId, Project, ProjectId
from teraflock.tenant.organisation.rules import check_active
from teraflock.tenant.project.claim import claimed
from teraflock.tenant.project.store import project_of_any_organisation
from teraflock.tenant.quota.rules import QuotaAmounts
from teraflock.tenant.quota.store import count_projects


class InstanceService:
    def __init__(
        self,
        database: Database,
        clock: Clock,
        engines: Engines,
        *,
        policy: Policy | None = None,
        memory: FleetMemory | None = None,
        random_bytes: Callable[[int], bytes] = os.urandom,
        wake: Callable[[], None] = lambda: None,
        admits: Admits = lambda tx, project_id: None,
        used_by: UsedBy = lambda tx, now: {},
        read_prices: ReadPrices = no_prices,
    ) -> None:
        self._database = database
        self._clock = clock
        self._engines = engines
        self._policy = policy or Policy()
        self._memory = memory or FleetMemory(clock)
        self._changes = InstanceChanges(database, clock, engines, random_bytes, wake, admits)
        self._rentable = Rentable(database, engines)
        self._shown: dict[Row, View] = {}
        self.snapshots = SnapshotService(self._changes)
        self.volumes = VolumeService(self._changes)
        self.guests = GuestService(self._changes)
        self.queue = QueueService(self._changes, self._launch_queued, self._policy, used_by)
        self.bids = BidService(self._changes, self._policy, read_prices)
        self._read_prices = read_prices

    def page(
        self,
        project: ProjectId,
        *,
        after: str = "",
        limit: int,
        gone: bool = False,
        only: InstanceFilter = store.EVERYTHING,
    ) -> tuple[View, ...]:
        with self._database.read() as tx:
            views = store.page(tx, project, after=after, limit=limit, gone=gone, only=only, shown=self._shown)
        return tuple([view if view.host_name else self._marked(view) for view in views])

    def view(self, project: ProjectId, ref: str) -> View:
        with self._database.read() as tx:
            return self._marked(found_or_deleted(tx, project, ref, self._clock.now()))

    def views_of(self, made: Sequence[Instance]) -> tuple[View, ...]:
        """The views of instances that the transaction of this request has just written."""
        with self._database.read() as tx:
            return tuple(self._marked(store.view_of(tx, each)) for each in made)

    def usage(self, project: ProjectId) -> QuotaAmounts:
        """What counts against a project's quota, including images."""
        with self._database.read() as tx:
            return replace(
                store.usage(tx, project),
                images_bytes=images.kept_bytes(tx, project),
                data_bytes=datasets.kept_bytes(tx, project),
            )

    def usage_of_organisation(self, organisation: OrganisationId) -> QuotaAmounts:
        with self._database.read() as tx:
            return replace(
                store.usage_of_organisation(tx, organisation),
                images_bytes=images.kept_bytes_of_organisation(tx, organisation),
                data_bytes=datasets.kept_bytes_of_organisation(tx, organisation),
                projects=count_projects(tx, organisation),
            )

    # Acts

    def to_rent(self, project: Project, order: Order) -> tuple[Size, RentalSpec]:
        """What an order would rent, and where."""
        found, types, _ = self._rentable.find(project, order)
        return choose(found, types)

    def providers(self, project: Project) -> frozenset[str]:
        """The providers at which a project may rent machines."""
        return self._rentable.providers(project)

    def explain(self, project: Project, order: Order) -> Explanation:
        """Where an order would run now, and why not elsewhere. Quotas and budgets are not checked."""
        check(order)
        if order.type or order.provider:
            raise BadInput(
                "`--explain` explains the choice of own hosts, and this order rents a machine",
                hint="Leave out `--type` and `--provider`",
            )
        with self._database.read() as tx:
            need, terms = launching.on_own_hosts(tx, self._memory, project, order)
            return explain(tx, self._policy, need, order.instances, terms)

    def launch_or_queue(
        self, actor: Actor, project: Project, order: Order
    ) -> tuple[tuple[Instance, ...], QueuedLaunch | None]:
        """Launch an order. Add it to the queue if it must wait: with `queue`, for room or quota; without, only for
        preemptible instances that have to leave their cards to it."""
        is_rented = bool(order.site) and not self._engines.can(order.site, Capability.PLACEMENT)
        if not order.queue and (is_rented or order.type or order.provider or order.mode == "spot"):
            return self.launch(actor, project, order), None
        check(order)

        def work(tx: Transaction) -> tuple[tuple[Instance, ...], QueuedLaunch | None]:
            fresh = claimed(tx, project)
            check_active(tx, project.organisation_id)
            try:
                made = self._placed(tx, actor, fresh, order)
            except (NoCapacity, QuotaReached) as error:  # raised before anything is written
                need, terms = launching.on_own_hosts(tx, self._memory, fresh, order)
                takes = isinstance(error, NoCapacity) and self.bids.makes_room(
                    tx, project.id, order, need, terms
                )
                if not (order.queue or takes):
                    raise
                check_possible(tx, self._policy, need, order.instances, terms)
                check_quota(tx, fresh, need, order.instances, ever=True)
                why = "Preemptible instances leave their cards to it" if takes else error.sentence
                return (), self.queue.add(tx, actor, fresh, order, need, why)
            return self._admitted(tx, actor, project, made), None

        made, queued = self._database.write_with_locks(work)
        self._changes.wake()
        return made, queued

    def launch(self, actor: Actor, project: Project, order: Order) -> tuple[Instance, ...]:
        check(order)
        order, types, choices = self._rentable.find(project, order)
        if order.burst and order.mode != "bid" and (own := own_first(order, types)):
            with suppress(NoCapacity, BadInput):  # no host of ours has room for it: rent
                return self._launch(actor, project, own, ())
        return self._launch(actor, project, order, types, choices)

    def _launch(
        self,
        actor: Actor,
        project: Project,
        order: Order,
        types: Sequence[MachineType],
        choices: tuple[RentalChoice, ...] = (),
    ) -> tuple[Instance, ...]:
        def work(tx: Transaction) -> tuple[Instance, ...]:
            fresh = claimed(tx, project)
            check_active(tx, project.organisation_id)
            made = self._placed(tx, actor, fresh, order, types, choices=choices)
            return self._admitted(tx, actor, project, made)

        made = self._database.write_with_locks(work)
        self._changes.wake()
        return made

    def _placed(
        self,
        tx: Transaction,
        actor: Actor,
        project: Project,
        order: Order,
        types: Sequence[MachineType] = (),
        queued_id: str = "",
        choices: tuple[RentalChoice, ...] = (),
    ) -> tuple[Instance, ...]:
        return launching.launch(
            tx,
            actor,
            project,
            order,
            engines=self._engines,
            types=types,
            policy=self._policy,
            memory=self._memory,
            now=self._clock.now(),
            random_bytes=self._changes.random_bytes,
            queued_id=queued_id,
            choices=choices,
            read_prices=self._read_prices,
        )

    def _admitted(
        self, tx: Transaction, actor: Actor, project: Project, made: tuple[Instance, ...]
    ) -> tuple[Instance, ...]:
        for instance in made:
            self._changes.audit.record(tx, actor, "instance.launch", instance.id, project, name=instance.name)
        self._changes.admits(tx, project.id)
        return made

    def _launch_queued(
        self, tx: Transaction, actor: Actor, project: Project, order: Order, queued_id: str
    ) -> tuple[Instance, ...]:
        check_active(tx, project.organisation_id)
        made = self._placed(tx, actor, project, order, queued_id=queued_id)
        return self._admitted(tx, actor, project, made)

    def stop(self, actor: Actor, project: Project, ref: str, *, reason: str = "") -> Instance:
        """Stop an instance. With a reason, it is the operator's stop, and the tenant cannot start the instance."""

        def change(tx: Transaction, instance: Instance, now: datetime) -> Instance:
            self._changes.check_can(instance, Capability.STOP, "be stopped and keep its disk")
            if _is_ending(instance):
                raise cannot("be stopped", instance)
            held = replace(instance, hold=Hold(reason=reason, since=now)) if reason else instance
            if instance.wanted == Wanted.STOPPED:
                return withdrawn(held)  # the first request counts: it is charged until then
            return _ended(held, Wanted.STOPPED, asked_at(instance, now))

        return self._changes.apply(actor, project, ref, "stop", change, reason)

    def suspend(self, actor: Actor, project: Project, ref: str, reason: str) -> Instance:
        """Stop an instance of a suspended organisation, without a hold: the tenant can start it afterwards."""

        def change(tx: Transaction, instance: Instance, now: datetime) -> Instance:
            if instance.phase == Phase.FAILED or instance.wanted != Wanted.RUNNING:
                return instance
            return _ended(instance, end_of(instance), now)

        return self._changes.apply(actor, project, ref, "suspend", change, reason)

    def end(self, actor: Actor, project: Project, ref: str) -> Instance:
        """Stop an instance that must not run any more, or delete it if its site cannot keep its disk."""
        with self._database.read() as tx:
            instance = found(tx, project.id, ref).instance
        act = self.stop if end_of(instance) == Wanted.STOPPED else self.delete
        return act(actor, project, ref)

    def release(self, actor: Actor, project: Project, ref: str, reason: str) -> Instance:
        """Lift the operator's hold, so that the tenant can start the instance."""

        def change(tx: Transaction, instance: Instance, now: datetime) -> Instance:
            return replace(instance, hold=None) if instance.hold else instance

        return self._changes.apply(actor, project, ref, "release", change, reason)

    def acknowledge(self, actor: Actor, project: Project, ref: str) -> Instance:
        """Remove the notice that the tenant has read."""

        def change(tx: Transaction, instance: Instance, now: datetime) -> Instance:
            return replace(instance, notice="") if instance.notice else instance

        return self._changes.apply(actor, project, ref, "acknowledge", change)

    def start(self, actor: Actor, project: Project, ref: str, *, reason: str = "") -> Instance:
        """Start an instance. With a reason, it is the operator's start, which lifts the operator's hold."""

        def change(tx: Transaction, instance: Instance, now: datetime) -> Instance:
            if instance.hold and not reason:
                raise _held(instance, instance.hold)
            if instance.wanted == Wanted.RUNNING and instance.phase != Phase.FAILED:
                return instance
            if instance.phase != Phase.STOPPED or instance.progress:
                raise cannot("be started", instance)
            self._changes.check_can(instance, Capability.STOP, "be started again")
            outputs.remove_output(tx, instance.id)  # the command starts with an empty log
            return started(instance, take_back(tx, self._policy, instance), now)

        return self._changes.apply(actor, project, ref, "start", change, reason, grows=True)

    def restart(self, actor: Actor, project: Project, ref: str) -> Instance:
        def change(tx: Transaction, instance: Instance, now: datetime) -> Instance:
            self._changes.check_can(instance, Capability.STOP, "be restarted")
            if instance.phase != Phase.RUNNING or not is_at_rest(instance):
                raise cannot("be restarted", instance)
            return replace(instance, request=Request(operation=Operation.RESTART))

        return self._changes.apply(actor, project, ref, "restart", change)

    def delete(self, actor: Actor, project: Project, ref: str, *, reason: str = "") -> Instance:
        def change(tx: Transaction, instance: Instance, now: datetime) -> Instance:
            if instance.wanted == Wanted.GONE:
                return instance
            is_stopping = instance.wanted == Wanted.STOPPED and instance.phase != Phase.STOPPED
            # it is charged until the stop was requested
            first = instance.wanted_at if is_stopping else asked_at(instance, now)
            return replace(instance, wanted=Wanted.GONE, wanted_at=first)

        return self._changes.apply(actor, project, ref, "delete", change, reason)

    def label(self, actor: Actor, project: Project, ref: str, changes: Mapping[str, str | None]) -> Instance:
        """Set labels, or remove those with the value None. Bills use the labels of the time of usage."""

        def change(tx: Transaction, instance: Instance, now: datetime) -> Instance:
            if _is_ending(instance):
                raise cannot("be labelled", instance)
            merged = {**instance.labels, **changes}
            labels = {key: value for key, value in merged.items() if value is not None}
            if labels == instance.labels:
                return instance
            check_labels(labels)
            return replace(instance, labels=labels)

        return self._changes.apply(actor, project, ref, "label", change)

    def resize(self, actor: Actor, project: Project, ref: str, wish: ShapeWish) -> Instance:
        """Change limits while it runs if the engine can. Other cards need a restart. A disk can only grow."""

        def change(tx: Transaction, instance: Instance, now: datetime) -> Instance:
            check_at_rest(instance, "be resized")
            if instance.spec.rental is not None:
                raise Refused(
                    f"`{instance.name}` runs on a rented machine, whose size is fixed",
                    hint="Launch another one with the type you need: `tera launch --site NAME --type TYPE`",
                )
            check_active(tx, project.organisation_id)
            return self._resize(tx, project, instance, wish)

        return self._changes.apply(actor, project, ref, "resize", change, grows=True)

    def _resize(self, tx: Transaction, project: Project, instance: Instance, wish: ShapeWish) -> Instance:
        shape = changed_shape(instance.shape, wish, fleet.kinds_of_hosts(tx))
        if shape == instance.shape:
            return instance
        if shape.disk_bytes < instance.shape.disk_bytes:
            raise BadInput("A disk can grow but not shrink", hint="Launch a new instance with a smaller disk")
        fresh = project_of_any_organisation(tx, project.id) or project
        check_quota(tx, fresh, shape, 1, instead_of=instance.shape)
        if instance.phase != Phase.STOPPED:
            return self._resized(tx, instance, shape)
        check_host_could(tx, self._policy, instance, shape)
        grown = replace(instance.held, disk_bytes=shape.disk_bytes)
        return replace(instance, shape=shape, held=grown)  # applied at the next start

    def set_region(self, actor: Actor, host_ref: str, region: str) -> Host:
        """Move a host to another region. Its instances get an event, because other prices apply from now on."""
        check_place(region, "a region")
        return self._database.write_with_locks(
            lambda tx: move_host(tx, self._changes, actor, host_ref, region, self._clock.now())
        )

    def publish(self, tx: Transaction, actor: Actor, project: Project, ref: str, image_id: str) -> InstanceId:
        """Request an image of an instance's disk. The caller writes the row of the image."""
        instance, now = found(tx, project.id, ref).instance, self._clock.now()
        self._changes.check_can(instance, Capability.IMAGES_FROM_INSTANCES, "make an image")
        check_at_rest(instance, "make an image")
        after = replace(instance, request=Request(operation=Operation.PUBLISH, subject=image_id))
        return self._changes.put(tx, actor, project, instance, after, "publish", now).id

    def _marked(self, view: View) -> View:
        """An instance without a host is simulated if its site is; if its site is unknown, if any site is."""
        if view.host_name:
            return view
        site = view.instance.site
        simulated = any(each.simulated for each in self._engines if not site or each.site == site)
        return replace(view, simulated=simulated)

    def _resized(self, tx: Transaction, instance: Instance, shape: Size) -> Instance:
        restarts = self._restarts(instance, shape)
        held = take_more(tx, self._policy, instance, shape)
        alike = [card.slot for card in held.gpus if card.gpu == shape.gpu]
        request = Request(
            operation=Operation.RESIZE_RESTART if restarts else Operation.RESIZE,
            shape_before=instance.shape,
            slots_before=tuple(card.slot for card in instance.held.gpus),
            slots_after=tuple(alike[: shape.gpus]),
        )
        return replace(instance, shape=shape, held=held, request=request)

    def _restarts(self, instance: Instance, shape: Size) -> bool:
        other_cards = (shape.gpu, shape.gpus) != (instance.shape.gpu, instance.shape.gpus)
        return other_cards or not self._engines.can(instance.site, Capability.LIVE_RESIZE)


def _held(instance: Instance, hold: Hold) -> Refused:
    return Refused(
        f"The operator stopped `{instance.name}`: {hold.reason}",
        hint="Only the operator can lift this. You can still delete the instance",
    )


def _ended(instance: Instance, wanted: Wanted, at: datetime) -> Instance:
    """An instance that should no longer run. If its start has not begun, it gives back what it held for it."""
    after = replace(withdrawn(instance), wanted=wanted, wanted_at=at)
    not_begun = instance.phase == Phase.STOPPED and instance.progress is None
    return holding(after) if not_begun else after


def _is_ending(instance: Instance) -> bool:
    return instance.phase in ENDED or instance.wanted == Wanted.GONE
