"""What the edges ask of instances. Every act writes what is wanted, sets aside what it needs, and wakes the loops.

Nothing here calls an engine, but for looking inside a running guest (`run`, `log`).
"""

import os
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final, TypeVar

from msgspec.structs import replace

from teraflock.base.clock import Clock
from teraflock.base.errors import BadInput, Conflict, NotFound, Refused
from teraflock.base.ids import new_id
from teraflock.base.size import Size
from teraflock.fleet import store as fleet
from teraflock.fleet.memory import FleetMemory
from teraflock.fleet.model import Host, HostKind
from teraflock.fleet.placement import Policy
from teraflock.image import store as images
from teraflock.instance import launching, store
from teraflock.instance.archive import OpenFile
from teraflock.instance.claims import (
    check_host_could,
    check_quota,
    check_snapshots_quota,
    take_back,
    take_more,
)
from teraflock.instance.driver import Capability, ComputeDriver, Handle, Ran
from teraflock.instance.engines import Engines
from teraflock.instance.model import (
    Access,
    Hold,
    Instance,
    InstanceFilter,
    InstanceId,
    Log,
    Operation,
    RentalSpec,
    Request,
    Snapshot,
    SnapshotId,
    View,
)
from teraflock.instance.orders import Order, ShapeWish, changed_shape, check, check_labels, check_name
from teraflock.instance.renting import choose
from teraflock.instance.rules import allows, asked_at, end_of, holding, settled
from teraflock.instance.snapshot import store as snapshots
from teraflock.instance.states import Phase, Wanted
from teraflock.instance.telling import operated
from teraflock.storage.database import Database, Overtaken, Row, Transaction
from teraflock.storage.events import record_event
from teraflock.tenant.audit.service import Audit
from teraflock.tenant.model import Actor, By, OrganisationId, Project, ProjectId
from teraflock.tenant.organisation.rules import check_active
from teraflock.tenant.project.claim import claimed
from teraflock.tenant.project.store import project_of_any_organisation
from teraflock.tenant.quota.rules import QuotaAmounts
from teraflock.tenant.quota.store import count_projects

T = TypeVar("T")
REGION: Final = re.compile(r"[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?")
OUTPUT_KEPT: Final = timedelta(days=7)
"""How long the log of a command can be read after its instance is gone."""
Change = Callable[[Transaction, Instance, datetime], Instance]


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
        admits: Callable[[Transaction, ProjectId], None] = lambda tx, project_id: None,
    ) -> None:
        """`admits` raises where a project may not have all that was just written for it: who pays has a say there."""
        self._database = database
        self._clock = clock
        self._engines = engines
        self._policy = policy or Policy()
        self._memory = memory or FleetMemory(clock)
        self._random_bytes = random_bytes
        self._wake = wake
        self._admits = admits
        self._shown: dict[Row, View] = {}
        self._audit = Audit(clock, random_bytes)

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
            return self._marked(self._found_or_deleted(tx, project, ref))

    def usage(self, project: ProjectId) -> QuotaAmounts:
        """What counts against a project's quota, images included."""
        with self._database.read() as tx:
            return replace(store.usage(tx, project), images_bytes=images.kept_bytes(tx, project))

    def usage_of_organisation(self, organisation: OrganisationId) -> QuotaAmounts:
        with self._database.read() as tx:
            return replace(
                store.usage_of_organisation(tx, organisation),
                images_bytes=images.kept_bytes_of_organisation(tx, organisation),
                projects=count_projects(tx, organisation),
            )

    def snapshots(self, project: ProjectId, ref: str) -> tuple[Snapshot, ...]:
        with self._database.read() as tx:
            return snapshots.of_instance(tx, _found(tx, project, ref).instance.id)

    # Acts

    def to_rent(self, project: Project, order: Order) -> tuple[Size, RentalSpec]:
        """What an order would rent, and where."""
        with self._database.read() as tx:
            launching.check_site(tx, self._engines, project, order)
        return choose(order, self._engines.at(order.site).types())

    def launch(self, actor: Actor, project: Project, order: Order) -> tuple[Instance, ...]:
        check(order)

        def work(tx: Transaction) -> tuple[Instance, ...]:
            now = self._clock.now()
            fresh = claimed(tx, project)
            check_active(tx, project.organisation_id)
            made = launching.launch(
                tx,
                actor,
                fresh,
                order,
                engines=self._engines,
                policy=self._policy,
                memory=self._memory,
                now=now,
                random_bytes=self._random_bytes,
            )
            for instance in made:
                self._audit.record(tx, actor, "instance.launch", instance.id, project, name=instance.name)
            self._admits(tx, project.id)
            return made

        made = self._database.write_with_locks(work)
        self._wake()
        return made

    def stop(self, actor: Actor, project: Project, ref: str, *, reason: str = "") -> Instance:
        """With a reason it is the operator's stop, which the tenant cannot undo."""

        def change(tx: Transaction, instance: Instance, now: datetime) -> Instance:
            self._check_can(instance, Capability.STOP, "be stopped and keep its disk")
            if instance.phase in (Phase.FAILED, Phase.GONE) or instance.wanted == Wanted.GONE:
                raise _cannot("be stopped", instance)
            held = replace(instance, hold=Hold(reason=reason, since=now)) if reason else instance
            if instance.wanted == Wanted.STOPPED:
                return held  # what was asked first counts: it is charged until then
            after = replace(held, wanted=Wanted.STOPPED, wanted_at=asked_at(instance, now))
            not_begun = instance.phase == Phase.STOPPED and instance.progress is None
            # a start that is taken back gives back what was set aside for it
            return holding(after) if not_begun else after

        return self._change(actor, project, ref, "stop", change, reason)

    def suspend(self, actor: Actor, project: Project, ref: str, reason: str) -> Instance:
        """End what a suspended organisation runs. No hold: resuming the organisation lifts it."""

        def change(tx: Transaction, instance: Instance, now: datetime) -> Instance:
            if instance.phase == Phase.FAILED or instance.wanted != Wanted.RUNNING:
                return instance
            after = replace(instance, wanted=end_of(instance), wanted_at=now)
            not_begun = instance.phase == Phase.STOPPED and instance.progress is None
            return holding(after) if not_begun else after

        return self._change(actor, project, ref, "suspend", change, reason)

    def end(self, actor: Actor, project: Project, ref: str) -> Instance:
        """Stop an instance that may not run on, or delete it where its site cannot keep its disk."""
        with self._database.read() as tx:
            instance = _found(tx, project.id, ref).instance
        act = self.stop if end_of(instance) == Wanted.STOPPED else self.delete
        return act(actor, project, ref)

    def release(self, actor: Actor, project: Project, ref: str, reason: str) -> Instance:
        """Lift the operator's hold: the tenant may start it again."""

        def change(tx: Transaction, instance: Instance, now: datetime) -> Instance:
            return replace(instance, hold=None) if instance.hold else instance

        return self._change(actor, project, ref, "release", change, reason)

    def acknowledge(self, actor: Actor, project: Project, ref: str) -> Instance:
        """The tenant has read the notice: it is not shown any more."""

        def change(tx: Transaction, instance: Instance, now: datetime) -> Instance:
            return replace(instance, notice="") if instance.notice else instance

        return self._change(actor, project, ref, "acknowledge", change)

    def start(self, actor: Actor, project: Project, ref: str, *, reason: str = "") -> Instance:
        """With a reason it is the operator's start, which lifts the operator's hold."""

        def change(tx: Transaction, instance: Instance, now: datetime) -> Instance:
            if instance.hold and not reason:
                raise _held(instance, instance.hold)
            if instance.wanted == Wanted.RUNNING and instance.phase != Phase.FAILED:
                return instance
            if instance.phase != Phase.STOPPED or instance.progress:
                raise _cannot("be started", instance)
            self._check_can(instance, Capability.STOP, "be started again")
            store.remove_output(tx, instance.id)  # a command begins anew, with an empty log
            return replace(
                instance,
                wanted=Wanted.RUNNING,
                wanted_at=now,
                held=take_back(tx, self._policy, instance),
                exit_code=None,
                problem="",
                problem_operator="",
                hold=None,
                command_run=instance.command_run + (instance.access == Access.COMMAND),
                stop_at=None,
                stop_told=False,
            )

        return self._change(actor, project, ref, "start", change, reason, grows=True)

    def restart(self, actor: Actor, project: Project, ref: str) -> Instance:
        def change(tx: Transaction, instance: Instance, now: datetime) -> Instance:
            self._check_can(instance, Capability.STOP, "be restarted")
            _check_idle(instance, Phase.RUNNING, "be restarted")
            return replace(instance, request=Request(operation=Operation.RESTART))

        return self._change(actor, project, ref, "restart", change)

    def delete(self, actor: Actor, project: Project, ref: str, *, reason: str = "") -> Instance:
        def change(tx: Transaction, instance: Instance, now: datetime) -> Instance:
            if instance.wanted == Wanted.GONE:
                return instance
            is_stopping = instance.wanted == Wanted.STOPPED and instance.phase != Phase.STOPPED
            # it is charged until the stop was asked for
            first = instance.wanted_at if is_stopping else asked_at(instance, now)
            return replace(instance, wanted=Wanted.GONE, wanted_at=first)

        return self._change(actor, project, ref, "delete", change, reason)

    def label(self, actor: Actor, project: Project, ref: str, changes: Mapping[str, str | None]) -> Instance:
        """Set labels, or remove those given as None. The bill counts by the labels of the time."""

        def change(tx: Transaction, instance: Instance, now: datetime) -> Instance:
            if instance.phase in (Phase.FAILED, Phase.GONE) or instance.wanted == Wanted.GONE:
                raise _cannot("be labelled", instance)
            merged = {**instance.labels, **changes}
            labels = {key: value for key, value in merged.items() if value is not None}
            if labels == instance.labels:
                return instance
            check_labels(labels)
            return replace(instance, labels=labels)

        return self._change(actor, project, ref, "label", change)

    def resize(self, actor: Actor, project: Project, ref: str, wish: ShapeWish) -> Instance:
        """Limits change live where the engine can; other cards mean a restart. A disk only grows."""

        def change(tx: Transaction, instance: Instance, now: datetime) -> Instance:
            if instance.phase not in (Phase.RUNNING, Phase.STOPPED) or instance.progress or instance.request:
                raise _cannot("be resized", instance)
            if instance.spec.rental is not None:
                raise Refused(
                    f"`{instance.name}` runs on a rented machine, whose size is fixed",
                    hint="Launch another one with the type you need: `tera launch --site NAME --type TYPE`",
                )
            check_active(tx, project.organisation_id)
            shape = changed_shape(instance.shape, wish, fleet.kinds_of_hosts(tx))
            if shape == instance.shape:
                return instance
            if shape.disk_bytes < instance.shape.disk_bytes:
                raise BadInput(
                    "A disk can grow but not shrink", hint="Make a new instance with a smaller disk"
                )
            check_quota(tx, _as_it_is(tx, project), shape, 1, instead_of=instance.shape)
            if instance.phase == Phase.STOPPED:
                check_host_could(tx, self._policy, instance, shape)
                grown = replace(instance.held, disk_bytes=shape.disk_bytes)
                return replace(instance, shape=shape, held=grown)  # fitted at the next start
            return self._resized(tx, instance, shape)

        return self._change(actor, project, ref, "resize", change, grows=True)

    def snapshot(self, actor: Actor, project: Project, ref: str, name: str) -> Snapshot:
        check_name(name)
        id = SnapshotId(new_id("snp", self._clock.now(), self._random_bytes))

        def change(tx: Transaction, instance: Instance, now: datetime) -> Instance:
            check_active(tx, project.organisation_id)
            self._check_can(instance, Capability.SNAPSHOTS, "be kept as a snapshot")
            if instance.phase not in (Phase.RUNNING, Phase.STOPPED) or instance.progress or instance.request:
                raise _cannot("be kept as a snapshot", instance)
            for each in snapshots.of_instance(tx, instance.id):
                if each.name == name and each.state != "failed":
                    raise Conflict(
                        f"`{instance.name}` has a snapshot `{name}` already", hint="Take another name"
                    )
                if each.name == name:
                    snapshots.remove(tx, each.id)  # nothing of it is on the engine: its step was undone
            check_snapshots_quota(tx, _as_it_is(tx, project))
            snapshots.insert(
                tx,
                Snapshot(
                    id=id,
                    project_id=project.id,
                    instance_id=instance.id,
                    name=name,
                    state="making",
                    created_at=now,
                ),
            )
            return replace(instance, request=Request(operation=Operation.SNAPSHOT, subject=id))

        instance = self._change(actor, project, ref, "snapshot", change, grows=True)
        with self._database.read() as tx:
            return next(each for each in snapshots.of_instance(tx, instance.id) if each.id == id)

    def restore(self, actor: Actor, project: Project, ref: str, snapshot: str) -> Instance:
        def change(tx: Transaction, instance: Instance, now: datetime) -> Instance:
            if instance.phase not in (Phase.RUNNING, Phase.STOPPED) or instance.progress or instance.request:
                raise _cannot("be restored", instance)
            found = _snapshot(tx, instance, snapshot)
            if found.state != "ready":
                raise Conflict(f"The snapshot `{found.name}` is not ready: {found.state}")
            running = instance.phase == Phase.RUNNING
            operation = Operation.RESTORE_RESTART if running else Operation.RESTORE
            return replace(instance, request=Request(operation=operation, subject=found.id))

        return self._change(actor, project, ref, "restore", change)

    def delete_snapshot(self, actor: Actor, project: Project, ref: str, snapshot: str) -> None:
        with self._database.read() as tx:
            view = _found(tx, project.id, ref)
            found = _snapshot(tx, view.instance, snapshot)
            driver = self._driver(view.instance)
        if view.instance.progress or view.instance.request:
            raise _cannot("lose a snapshot", view.instance)
        driver.delete_snapshot(_handle(view), found.id)

        def work(tx: Transaction) -> None:
            snapshots.remove(tx, found.id)
            self._tell_kept(tx, found.instance_id)
            self._audit.record(tx, actor, "snapshot.delete", found.id, project, name=found.name)

        self._database.write(work)

    def set_region(self, actor: Actor, host_ref: str, region: str) -> Host:
        """Where a host stands. All that is on it is told of, for from now on the prices of that region count."""
        if not REGION.fullmatch(region):
            raise BadInput(
                f"`{region[:80]}` cannot be the name of a region", hint="Up to 40 of `a-z`, `0-9` and `-`"
            )

        def work(tx: Transaction) -> Host:
            host = fleet.host(tx, host_ref)
            if host is None or host.kind != HostKind.OWN:
                raise NotFound(f"There is no own host `{host_ref[:80]}`", hint="`tera host list` lists them")
            if host.region == region:
                return host
            now = self._clock.now()
            instances = store.lock_on_host_in_all_projects(tx, host.id)
            fleet.lock_hosts(tx, [host.id])
            if {each.id for each in store.on_host_in_all_projects(tx, host.id)} != {
                each.id for each in instances
            }:
                raise Overtaken("an instance came or went meanwhile")
            fleet.set_region(tx, host.id, region)
            for instance in instances:
                store.tell_held(tx, instance, now=now, random_bytes=self._random_bytes)
            self._audit.record(tx, actor, "host.region", host.id, name=host.name, region=region)
            return replace(host, region=region)

        return self._database.write_with_locks(work)

    # Inside a guest

    def run(
        self,
        project: ProjectId,
        ref: str,
        command: Sequence[str],
        *,
        stdin: bytes = b"",
        seconds_max: float = 60,
        by: By | None = None,
    ) -> Ran:
        """Who ran which program is in the audit log; its words are not, for they may hold secrets."""
        with self._database.read() as tx:
            view = _found(tx, project, ref)
            self._check_can(view.instance, Capability.EXEC, "run commands")
            driver = self._driver(view.instance)
        if view.instance.phase != Phase.RUNNING:
            raise _cannot("run a command", view.instance)
        if by is not None:
            name, program = view.instance.name, command[0] if command else ""
            self._database.write(
                lambda tx: self._audit.note(
                    tx, by, "instance.exec", view.instance.id, name=name, program=program
                )
            )
        return driver.run(_handle(view), command, stdin=stdin, seconds_max=seconds_max)

    def files(self, project: ProjectId, ref: str) -> OpenFile:
        """The way to open entries of the instance's disk, running or stopped."""
        with self._database.read() as tx:
            view = _found(tx, project, ref)
            self._check_can(view.instance, Capability.FILES, "hand out files")
            if view.instance.phase not in (Phase.RUNNING, Phase.STOPPED):
                raise _cannot("hand out files", view.instance)
            driver = self._driver(view.instance)
        return lambda path: driver.file(_handle(view), path)

    def _user_data_log(self, project: ProjectId, ref: str) -> Log:
        """What its user-data wrote, as long as its disk is there."""
        with self._database.read() as tx:
            view = _found(tx, project, ref)
            instance = view.instance
            driver = self._driver(instance) if instance.phase in (Phase.RUNNING, Phase.STOPPED) else None
        if not instance.spec.user_data:
            raise Conflict(
                f"`{instance.name}` was launched without user-data", hint="`tera logs` shows its console"
            )
        state = driver.user_data_state(_handle(view)) if driver else None
        return Log(
            source="user-data",
            text=state.log.decode("utf-8", "replace") if state else "",
            exit_code=state.exit_code if state else instance.user_data_exit_code,
        )

    def log(self, project: ProjectId, ref: str, source: str | None = None) -> Log:
        """What its command wrote; of others, or where that is asked for, the guest's console."""
        if source == "user-data":
            return self._user_data_log(project, ref)
        with self._database.read() as tx:
            view = self._found_or_deleted(tx, project, ref)
            instance, kept = view.instance, store.output(tx, view.instance.id)
            driver = self._driver(instance) if instance.host_id else None
        if source == "command" and instance.access != Access.COMMAND:
            raise Conflict(
                f"`{instance.name}` was launched without a command", hint="`tera logs` shows its console"
            )
        if source == "console" or instance.access != Access.COMMAND:
            console = driver.console(_handle(view)) if driver else b""
            return Log(source="console", text=console.decode("utf-8", "replace"), exit_code=None)
        if driver and instance.phase == Phase.RUNNING:
            state = driver.command_state(_handle(view))
            if state is not None:
                return Log(
                    source="command", text=state.log.decode("utf-8", "replace"), exit_code=state.exit_code
                )
        return Log(source="command", text=kept or "", exit_code=instance.exit_code)

    # What the acts share

    def _marked(self, view: View) -> View:
        """An instance without a host was simulated if its site is; one of an unknown site, if any site is."""
        if view.host_name:
            return view
        site = view.instance.site
        simulated = any(each.simulated for each in self._engines if not site or each.site == site)
        return replace(view, simulated=simulated)

    def _found_or_deleted(self, tx: Transaction, project: ProjectId, ref: str) -> View:
        """Also by the name of one that deleted itself a while ago: its log and exit code can still be read."""
        view = store.find(tx, project, ref)
        since = self._clock.now() - OUTPUT_KEPT
        return view or store.find_deleted_by_itself(tx, project, ref, since) or _found(tx, project, ref)

    def publish(self, tx: Transaction, actor: Actor, project: Project, ref: str, image_id: str) -> Instance:
        """Ask for an image of the instance's disk; called by whoever makes the image's row."""
        instance, now = _found(tx, project.id, ref).instance, self._clock.now()
        self._check_can(instance, Capability.IMAGES_FROM_INSTANCES, "be made an image")
        if instance.phase not in (Phase.RUNNING, Phase.STOPPED) or instance.progress or instance.request:
            raise _cannot("be made an image", instance)
        request = Request(operation=Operation.PUBLISH, subject=image_id)
        return self._put(tx, actor, project, instance, replace(instance, request=request), "publish", now)

    def _change(
        self,
        actor: Actor,
        project: Project,
        ref: str,
        action: str,
        change: Change,
        reason: str = "",
        *,
        grows: bool = False,
    ) -> Instance:
        """`grows`: it may use more of the project's quota or budget."""

        def work(tx: Transaction) -> Instance:
            now = self._clock.now()
            if grows:
                claimed(tx, project)
            store.lock(tx, project.id, ref)
            before = _found(tx, project.id, ref).instance
            after = change(tx, before, now)
            if after is before:
                return before
            stored = self._put(tx, actor, project, before, after, action, now, reason)
            if _wants_more(before, stored):
                check_active(tx, project.organisation_id)
                self._admits(tx, project.id)
            return stored

        changed = self._database.write_with_locks(work)
        self._wake()
        return changed

    def _put(
        self,
        tx: Transaction,
        actor: Actor,
        project: Project,
        before: Instance,
        after: Instance,
        action: str,
        now: datetime,
        reason: str = "",
    ) -> Instance:
        after = replace(settled(after), due_at=now)
        stored = store.put(tx, before, after, now=now, random_bytes=self._random_bytes)
        why = {"by": "operator", "reason": reason} if reason else {}
        self._audit.record(tx, actor, f"instance.{action}", stored.id, project, name=stored.name, **why)
        if reason:
            record_event(tx, operated(stored, action, reason, now, self._random_bytes))
        return stored

    def _tell_kept(self, tx: Transaction, id: InstanceId) -> None:
        """What snapshots keep is part of what an instance holds, and its bill follows that."""
        before = store.by_id_in_all_projects(tx, id)
        kept_bytes = snapshots.kept_bytes(tx, id)
        if before is not None and before.held.snapshots_bytes != kept_bytes:
            after = replace(before, held=replace(before.held, snapshots_bytes=kept_bytes))
            store.put(tx, before, after, now=self._clock.now(), random_bytes=self._random_bytes)

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

    def _driver(self, instance: Instance) -> ComputeDriver:
        if instance.host_id is None:
            raise _cannot("be reached", instance)
        return self._engines.at(instance.site)

    def _check_can(self, instance: Instance, capability: Capability, what: str) -> None:
        """Refuse what its site does not support. A site that is not set up any more does not answer."""
        can = self._engines.can(instance.site, capability) and allows(instance, capability)
        if instance.host_id and not can:
            self._engines.at(instance.site)
            raise Refused(
                f"`{instance.name}` cannot {what}: its site `{instance.site}` does not support it",
                hint="`tera site show` lists what a site supports",
            )


def _held(instance: Instance, hold: Hold) -> Refused:
    return Refused(
        f"`{instance.name}` was stopped by the operator: {hold.reason}",
        hint="Only the operator can lift this. You can still delete the instance",
    )


def _wants_more(before: Instance, after: Instance) -> bool:
    """Whether it is to run now, or to be larger in anything: what costs more than before."""
    if after.wanted != Wanted.RUNNING:
        return False
    larger = any(
        getattr(after.shape, name) > getattr(before.shape, name)
        for name in ("gpus", "vcpus", "ram_bytes", "disk_bytes")
    )
    return before.wanted != Wanted.RUNNING or larger or after.shape.gpu != before.shape.gpu


def _as_it_is(tx: Transaction, project: Project) -> Project:
    """A claimed project with the quota it has now."""
    return project_of_any_organisation(tx, project.id) or project


def _found(tx: Transaction, project: ProjectId, ref: str) -> View:
    view = store.find(tx, project, ref)
    if view is None:
        raise NotFound(f"The project has no instance `{ref[:80]}`", hint="`tera ps` lists them")
    return view


def _snapshot(tx: Transaction, instance: Instance, ref: str) -> Snapshot:
    for each in snapshots.of_instance(tx, instance.id):
        if ref in (each.id, each.name):
            return each
    raise NotFound(
        f"`{instance.name}` has no snapshot `{ref[:80]}`", hint=f"`tera snapshot {instance.name}` lists them"
    )


def _handle(view: View) -> Handle:
    """How its engine is asked about an instance."""
    id = InstanceId(view.instance.id)
    return Handle(id, "", view.rented.remote_id) if view.rented else Handle(id, view.host_name or "")


def _check_idle(instance: Instance, phase: Phase, what: str) -> None:
    if instance.phase != phase or instance.progress or instance.request:
        raise _cannot(what, instance)


def _cannot(what: str, instance: Instance) -> Conflict:
    doing = instance.progress.operation if instance.progress else None
    if doing is None and instance.request:
        doing = instance.request.operation
    now = f"{instance.phase}, {doing} under way" if doing else str(instance.phase)
    return Conflict(
        f"`{instance.name}` cannot {what} now: it is {now}", hint="`tera show` tells more; try again later"
    )
