"""The acts of runs before their command starts: launch, set up, make an image of the setup, copy, start.

The instance is launched, and the image is made, in the transaction that writes the run: a crash leaves both or neither.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from hashlib import sha256
from itertools import chain
from typing import Final, Protocol

from msgspec.structs import replace

from teraflock.base.errors import BadInput, Conflict, Forbidden, NotFound, Refused, TeraflockError
from teraflock.base.quantities import bytes_text
from teraflock.catalog.costs import costs_of
from teraflock.dataset.files import DatasetFiles
from teraflock.dataset.model import FOLDER
from teraflock.dataset.rules import joined, tar_of
from teraflock.dataset.service import usable
from teraflock.image import store as images
from teraflock.image.model import Image, ImageState
from teraflock.image.service import ImageService
from teraflock.instance import store as instances
from teraflock.instance.archive import END as EMPTY_TAR
from teraflock.instance.claims import NoCapacity
from teraflock.instance.driver import Capability, ComputeDriver
from teraflock.instance.model import Instance
from teraflock.instance.orders import Order
from teraflock.instance.queue import store as queue
from teraflock.instance.queue.model import QueuedLaunch
from teraflock.instance.service import InstanceService
from teraflock.reconcile.run_choices import RunChoices
from teraflock.reconcile.run_owner import owner_of
from teraflock.reconcile.run_pulls import RunPulls
from teraflock.reconcile.surroundings import Surroundings
from teraflock.run import rules, store
from teraflock.run.bucket import RunBucket, RunBuckets, data_key, digest_key
from teraflock.run.checkpoint import (
    checkpoint_every_seconds,
    egress_seconds,
    expected_loss_hours,
    measured_save_seconds,
    save_seconds,
)
from teraflock.run.files import RunFiles
from teraflock.run.guard import STEADY
from teraflock.run.guest import CHECKPOINTS, WORK, RunGuest, folder_of
from teraflock.run.model import Run
from teraflock.run.nodes import environment as node_environment
from teraflock.run.nodes import with_fresh_logs
from teraflock.run.rules import POLL, ROOM_AGAIN, WAIT, moved
from teraflock.run.service import Seals
from teraflock.run.states import RunPhase, RunWanted
from teraflock.storage.database import Transaction
from teraflock.tenant.project.claim import claimed
from teraflock.tenant.project.store import project_of_any_organisation

SPOT_MODE: Final = "spot"
ON_DEMAND: Final = "on-demand"
COPY_BYTES_MAX: Final = 16 << 30
"""Of a dataset that is copied to a rented machine."""
PIECE_BYTES: Final = 1 << 20
EARLIER_RUNS_MAX: Final = 50
"""Among so many runs before it, an earlier one of the same script is looked for."""
NEEDED: Final = (Capability.EXEC, Capability.FILES)


class TakenOver(Exception):
    """Another process has the run. Raised in a transaction, so that nothing of it is kept."""


class Put(Protocol):
    def __call__(self, before: Run, after: Run, tx: Transaction | None = None) -> Run | None: ...


class RunServices(Protocol):
    """The services that acts use, on a transaction that is already open."""

    def instances_in(self, tx: Transaction) -> InstanceService: ...

    def images_in(self, tx: Transaction) -> ImageService: ...


class RunStarts:
    def __init__(
        self,
        around: Surroundings,
        services: RunServices,
        instances: InstanceService,
        files: RunFiles,
        vault: Seals,
        pulls: RunPulls,
        choices: RunChoices,
        dataset_files: DatasetFiles | None = None,
        buckets: RunBuckets | None = None,
    ) -> None:
        self._around = around
        self._instances = instances
        self._services = services
        self._files = files
        self._vault = vault
        self._pulls = pulls
        self._dataset_files = dataset_files
        self._choices = choices
        self._buckets = {} if buckets is None else buckets

    def let_go(self, tx: Transaction, run: Run) -> Run:
        """Cancel the queued launch and delete the instances that a run would leave behind, in the transaction that ends
        it. The queue starts a launch with the lock on its project, so it sees the cancelled one, or is seen here."""
        service = self._services.instances_in(tx)
        if (
            project_of_any_organisation(tx, run.project_id) is None
        ):  # it has no instances, or would still exist
            if (queued := self._queued_for(tx, run)) is not None:
                service.queue.drop(tx, queued.id)
            return run
        actor, project = owner_of(tx, run, anyone=True)
        claimed(tx, project)
        if (queued := self._queued_for(tx, run)) is not None:
            service.queue.cancel(actor, project, queued.id)
        run, left = rules.with_left(run, instances.with_label(tx, run.project_id, rules.LABEL, run.id))
        for id in left:
            service.delete(actor, project, id)
        return run

    def queued(self, run: Run, put: Put) -> Run | None:
        now = self._around.clock.now()
        if run.wanted == RunWanted.CANCELLED:
            return put(run, moved(run, RunPhase.CANCELLED, now, ended_at=now))
        with self._around.database.read() as tx:
            has_project = project_of_any_organisation(tx, run.project_id) is not None
        if not has_project:
            return put(run, moved(run, RunPhase.FAILED, now, ended_at=now, problem="Its project was removed"))
        adopted = self._waited_for(run, put)
        if adopted is not run:
            return adopted
        if run.spec.mode != SPOT_MODE:
            return self._launched(run, put, run.spec.mode)
        place = self._choices.next_place(run, None, up=True).place
        if place == STEADY:
            return self._launched(run, put, ON_DEMAND)
        if place is None:
            why = "Waiting: a spot machine is not worth its start now"
            return put(run, replace(run, problem=why, due_at=now + ROOM_AGAIN))
        return self._launched(run, put, SPOT_MODE)

    def _launched(self, run: Run, put: Put, mode: str) -> Run | None:
        """Launch, or note why that is not possible now. Without spot, on demand may have to do."""
        now, write = self._around.clock.now(), self._around.database.write_with_locks
        try:
            first, other = rules.order_names(run)
            try:
                after = write(partial(self._launch, run, put, mode=mode, name=first))
            except NoCapacity:
                raise
            except Conflict:  # the tenant may have another instance of that name
                after = write(partial(self._launch, run, put, mode=mode, name=other))
            self._around.wake()
            if mode == SPOT_MODE:
                self._choices.note(run, up=True)
            return after
        except (BadInput, Forbidden, NotFound) as error:
            return put(run, moved(run, RunPhase.FAILED, now, ended_at=now, problem=error.sentence))
        except TeraflockError as error:  # no room, a quota, a budget: wait for it
            if mode == SPOT_MODE and isinstance(error, NoCapacity):
                self._choices.note(run, up=False)
                if self._choices.next_place(run, None, up=False).place == STEADY:
                    return self._launched(run, put, ON_DEMAND)
            return put(run, replace(run, problem=f"Waiting: {error.sentence}", due_at=now + ROOM_AGAIN))

    def finds_spot(self, run: Run) -> bool:
        """Whether a spot machine could be had now. Only own hosts can be asked; elsewhere the answer is no."""
        if run.spec.type or run.spec.provider or run.spec.site:
            return False
        with self._around.database.read() as tx:
            _, project = owner_of(tx, run, anyone=True)
        try:
            order = replace(rules.order_of(run, run.spec.image), mode=SPOT_MODE)
            return bool(self._instances.explain(project, order).decision.chosen)
        except TeraflockError:
            return False

    def _launch(self, run: Run, put: Put, tx: Transaction, *, mode: str, name: str) -> Run | None:
        now = self._around.clock.now()
        actor, project = owner_of(tx, run)
        on_own_hosts = self._is_on_own_hosts(run)
        if run.spec.nodes > 1 and not on_own_hosts:
            raise BadInput(rules.NOT_RENTED)
        order = self.order(tx, run, mode=mode, name=name)
        if on_own_hosts and mode == ON_DEMAND and not run.spec.burst:
            order = replace(order, queue=True, priority=run.spec.priority)
        made, queued = self._services.instances_in(tx).launch_or_queue(actor, project, order)
        if queued is not None:
            after = replace(run, problem=f"Waiting: {queued.reason}", due_at=now + POLL)
        else:
            after = rules.launched(run, [each.id for each in made], now)
        return held(put(run, after, tx))

    def order(self, tx: Transaction, run: Run, *, mode: str, name: str) -> Order:
        """An order that does not wait in the queue of launches."""
        return replace(
            rules.order_of(run, self._image(tx, run)),
            mode=mode,
            bid_micros_per_hour=run.spec.bid_micros_per_hour if mode == run.spec.mode else None,
            name=name,
            queue=False,
            priority=0,
        )

    def _is_on_own_hosts(self, run: Run) -> bool:
        spec = run.spec
        if spec.type or spec.provider:
            return False
        return not spec.site or self._around.engines.can(spec.site, Capability.PLACEMENT)

    def _waited_for(self, run: Run, put: Put) -> Run | None:
        """Continue with what an earlier turn queued because there was no room. The same run: nothing was queued."""
        now = self._around.clock.now()
        with self._around.database.read() as tx:
            queued = self._queued_for(tx, run)
            made = [
                each
                for each in instances.with_label(tx, run.project_id, rules.LABEL, run.id)
                if rules.is_launched_for(run, each)
            ]
        if made:
            return put(run, rules.launched(run, [each.id for each in made], now))
        if queued is None:
            return run
        return put(run, replace(run, problem=f"Waiting: {queued.reason}", due_at=now + POLL))

    def _queued_for(self, tx: Transaction, run: Run) -> QueuedLaunch | None:
        for name in rules.order_names(run):
            found = queue.find(tx, run.project_id, name)
            if found is not None and found.launch and found.launch.labels.get(rules.LABEL) == run.id:
                return found
        return None

    def _image(self, tx: Transaction, run: Run) -> str:
        """The image with the finished setup if there is one, otherwise the image of the run."""
        if rules.has_setup(run.spec):
            cached = self._cached(tx, run)
            if cached is not None and cached.state == ImageState.READY:
                return cached.name
        return run.spec.image

    def _cached(self, tx: Transaction, run: Run) -> Image | None:
        base = images.find(tx, run.project_id, run.spec.image)
        return None if base is None else images.find(tx, run.project_id, rules.cache_name(run.spec, base.id))

    def starting(
        self, run: Run, put: Put, instance: Instance, guest: RunGuest, driver: ComputeDriver
    ) -> Run | None:
        now = self._around.clock.now()
        if missing := [each for each in NEEDED if each not in driver.capabilities]:
            why = f"The site `{instance.site}` does not support runs: it lacks `{missing[0]}`"
            return put(run, rules.ending(run, RunPhase.FAILED, now, why))
        needs_setup = (
            rules.has_setup(run.spec)
            and instance.image == run.spec.image
            and guest.state(rules.setup_key(run), 0).state != "ended"
        )
        return put(run, moved(run, RunPhase.SETUP if needs_setup else RunPhase.COPYING, now))

    def setting_up(
        self, run: Run, put: Put, instance: Instance, guests: Sequence[RunGuest], driver: ComputeDriver
    ) -> Run | None:
        """Set up all nodes. The image is made of node 0."""
        key, script = rules.setup_key(run), ("/bin/sh", "-c", rules.setup_script(run.spec))
        for guest in guests:
            guest.start(key, script, rules.environment_of(run, {}), [])
        run, seen, has_more = self._pulls.states(run, key, guests)
        now, states = self._around.clock.now(), {each.state for each in seen}
        if has_more or (states <= {"running", "ended"} and "running" in states):
            return put(run, replace(run, due_at=now + POLL))
        run = with_fresh_logs(run)
        if states != {"ended"}:
            return put(run, rules.lost(run, "Its instance restarted during the setup", now))
        if codes := [each.exit_code for each in seen if each.exit_code]:
            why = f"The setup failed with exit code {codes[0]}"
            return put(run, rules.ending(run, RunPhase.FAILED, now, why, exit_code=codes[0]))
        if Capability.IMAGES_FROM_INSTANCES in driver.capabilities:
            try:
                return self._around.database.write(partial(self._begin_caching, run, put, instance))
            except TeraflockError:
                pass  # another run makes the same image, or a quota is reached: go on without
        return put(run, moved(run, RunPhase.COPYING, now))

    def _begin_caching(self, run: Run, put: Put, instance: Instance, tx: Transaction) -> Run | None:
        actor, project = owner_of(tx, run)
        base = images.find(tx, project.id, run.spec.image)
        if base is None:
            raise NotFound("The image of the run is gone")
        name = rules.cache_name(run.spec, base.id)
        image = self._services.images_in(tx).from_instance(actor, project, name, instance.id)
        return held(put(run, moved(run, RunPhase.CACHING, self._around.clock.now(), image_id=image.id), tx))

    def caching(self, run: Run, put: Put) -> Run | None:
        """Wait for the image. A run does not need it itself, so a failure does not matter."""
        with self._around.database.read() as tx:
            image = images.by_id_in_all_projects(tx, run.image_id)
        now = self._around.clock.now()
        if image is not None and image.state == ImageState.WAITING:
            return put(run, replace(run, due_at=now + WAIT))
        return put(run, moved(run, RunPhase.COPYING, now, image_id=""))

    def copying(
        self, run: Run, put: Put, instances: Sequence[Instance], guests: Sequence[RunGuest]
    ) -> Run | None:
        digest = run.spec.workdir
        if digest and not self._files.received_bytes(run.project_id, digest)[1]:
            why = "Its files are no longer on the server. Start it again with `tera run`"
            return put(run, rules.ending(run, RunPhase.FAILED, self._around.clock.now(), why))
        new = [number for number, guest in enumerate(guests) if guest.state(run.key, 0).state == "absent"]
        used = [number for number in new if self._is_copied(run, guests[number])]
        # All nodes of a gang need the same checkpoints, also those on which the attempt before ran.
        fresh = [number for number in new if run.spec.nodes > 1 or number not in used]
        for number in fresh:
            self._copy(run, guests[number], empty=number in used)
            self._copy_data(run, instances[number], guests[number])
        if 0 in fresh:
            self._pulls.note_restored(run, guests[0])
        if new:  # only when all nodes have everything: those that start first wait for the others
            run = replace(run, save_every_seconds=self._save_every(run, instances[0], guests[0]))
            environment = self._environment(run)
            addresses = [each.address or "" for each in instances]
            folders = [environment["TERA_OUTPUTS"], environment["TERA_CHECKPOINTS"]]
            for number in new:
                own = node_environment(number, addresses, instances[number].shape.gpus)
                guests[number].start(run.key, run.spec.command, {**own, **environment}, folders)
        if fresh and not used and (run.attempt > 1 or not (run.spec.setup or run.spec.requirements)):
            self._choices.note_start(run, instances[0].created_at)
        now = self._around.clock.now()
        return put(run, moved(run, RunPhase.RUNNING, now, running_since=now, pulled_at=now, problem=""))

    def _environment(self, run: Run) -> dict[str, str]:
        """The variables of the command, the same on all nodes."""
        with self._around.database.read() as tx:
            sealed = store.sealed_secrets(tx, run.id)
        secrets = {name: self._vault.open(text, bound_to=f"{run.id}/{name}") for name, text in sealed.items()}
        return rules.environment_of(run, secrets)

    def _save_every(self, run: Run, instance: Instance, guest: RunGuest) -> int:
        """From how long saves took, in this run or an earlier one of its script, otherwise from their size; from the
        cost of a copy, and from how long such machines usually last."""
        with self._around.database.read() as tx:
            sizes = [each.size_bytes for each in store.checkpoints(tx, run.id)]
            measured = self._measured_save_seconds(tx, run)
        mode = instance.spec.mode
        loss_hours = self._choices.loss_hours(run) if mode == SPOT_MODE else expected_loss_hours(mode)
        saving = save_seconds(max(sizes, default=None), measured)
        if not guest.near:
            saving += self._egress_seconds(instance, max(sizes, default=0))
        return checkpoint_every_seconds(loss_hours, saving)

    def _measured_save_seconds(self, tx: Transaction, run: Run) -> float | None:
        earlier = store.page(tx, run.project_id, before=run.id, limit=EARLIER_RUNS_MAX, active=False)
        same = (each for each in earlier if rules.script_of(each.spec) == rules.script_of(run.spec))
        found = (measured_save_seconds(store.checkpoints(tx, each.id)) for each in chain([run], same))
        return next((each for each in found if each is not None), None)

    def _egress_seconds(self, instance: Instance, size_bytes: int) -> float:
        """What the provider charges for a copy of this size, in seconds of the machine. 0: nothing, or unknown."""
        rental, engines = instance.spec.rental, self._around.engines
        if rental is None or instance.site not in engines.records:
            return 0.0
        egress = costs_of(engines.records[instance.site].kind).egress
        prices = [
            each.prices.get(instance.spec.mode, 0)
            for each in engines.at(instance.site).types()
            if each.name == rental.type and each.region in rental.regions and egress
            if each.currency == egress.currency
        ]
        return egress_seconds(size_bytes, egress.micros, prices[0]) if egress and prices else 0.0

    def _is_copied(self, run: Run, guest: RunGuest) -> bool:
        """Whether the previous attempt ran on this disk: then its files and checkpoints are newer than the copies."""
        before = replace(run, attempt=run.attempt - 1)
        return run.attempt > 1 and guest.state(before.key, 0).state != "absent"

    def _copy(self, run: Run, guest: RunGuest, *, empty: bool) -> None:
        """Copy files and checkpoints to a guest. `empty`: remove the checkpoints that are there."""
        folder = folder_of(run.spec.checkpoints, CHECKPOINTS)
        if empty:
            guest.put(run.key, [EMPTY_TAR], folder, replace=True)
        if run.spec.workdir:
            guest.put(run.key, self._files.upload(run.project_id, run.spec.workdir), WORK, replace=True)
        with self._around.database.read() as tx:
            kept = store.checkpoints(tx, run.id)
        for each in kept:
            self._pulls.restore(run, guest, each, folder)

    def _copy_data(self, run: Run, instance: Instance, guest: RunGuest) -> None:
        """Copy the datasets that the engine does not share with the guest, as on rented machines."""
        if instance.spec.data or self._dataset_files is None:
            return
        with self._around.database.read() as tx:
            _, project = owner_of(tx, run, anyone=True)
            wanted = usable(tx, project, run.spec.data)
        for each in wanted:
            if each.size_bytes > COPY_BYTES_MAX:
                raise Refused(
                    f"The dataset `{each.name}` is too large to copy to a rented machine",
                    hint=f"Run it without rented machines, or use a dataset of up to {bytes_text(COPY_BYTES_MAX)}",
                )
            tar = tar_of(self._dataset_files.manifest(each.id), self._dataset_files.content(each.id))
            pieces, folder = joined(tar, PIECE_BYTES), f"{FOLDER}/{each.name}"
            bucket = self._buckets.get(guest.near)
            if bucket is None:
                guest.put(run.key, pieces, folder, replace=True)
            else:
                digest = _cached_in(bucket, each.id, pieces)
                guest.fetch(run.key, bucket.get_url(data_key(each.id)), digest, folder, replace=True)


def _cached_in(bucket: RunBucket, dataset_id: str, tar: Iterable[bytes]) -> str:
    """Copy a dataset to the bucket of a region, once. Return its digest."""
    key = digest_key(dataset_id)
    if key in bucket.sizes(key):
        return b"".join(bucket.get_stream(key)).decode()
    digest = sha256()

    def counted() -> Iterator[bytes]:
        for piece in tar:
            digest.update(piece)
            yield piece

    bucket.put_stream(data_key(dataset_id), counted())
    bucket.put_stream(key, [digest.hexdigest().encode()])
    return digest.hexdigest()


def held(written: Run | None) -> Run:
    if written is None:
        raise TakenOver
    return written
