"""The acts of runs before their command starts: launch, set up, make an image of the setup, copy, start.

The instance is launched, and the image is made, in the transaction that writes the run: a crash leaves both or neither.
"""

from functools import partial
from typing import Final, Protocol

from msgspec.structs import replace

from teraflock.base.errors import BadInput, Conflict, Forbidden, NotFound, TeraflockError
from teraflock.image import store as images
from teraflock.image.model import Image, ImageState
from teraflock.image.service import ImageService
from teraflock.instance.driver import Capability, ComputeDriver
from teraflock.instance.model import Instance
from teraflock.instance.service import InstanceService
from teraflock.reconcile.run_owner import owner_of
from teraflock.reconcile.run_pulls import RunPulls
from teraflock.reconcile.surroundings import Surroundings
from teraflock.run import rules, store
from teraflock.run.files import RunFiles
from teraflock.run.guard import needs_steady
from teraflock.run.guest import CHECKPOINTS, WORK, RunGuest, folder_of
from teraflock.run.model import Run
from teraflock.run.rules import POLL, ROOM_AGAIN, WAIT, moved
from teraflock.run.service import Seals
from teraflock.run.states import RunPhase, RunWanted
from teraflock.storage.database import Transaction

SPOT: Final = "spot"
NEEDED: Final = (Capability.EXEC, Capability.FILES)


class Put(Protocol):
    def __call__(self, before: Run, after: Run, tx: Transaction | None = None) -> Run | None: ...


class RunServices(Protocol):
    """The services that acts use, on a transaction that is already open."""

    def instances_in(self, tx: Transaction) -> InstanceService: ...

    def images_in(self, tx: Transaction) -> ImageService: ...


class RunStarts:
    def __init__(
        self, around: Surroundings, services: RunServices, files: RunFiles, vault: Seals, pulls: RunPulls
    ) -> None:
        self._around = around
        self._services = services
        self._files = files
        self._vault = vault
        self._pulls = pulls

    def queued(self, run: Run, put: Put) -> Run | None:
        now = self._around.clock.now()
        if run.wanted == RunWanted.CANCELLED:
            return put(run, moved(run, RunPhase.CANCELLED, now, ended_at=now))
        write = self._around.database.write_with_locks
        try:
            try:
                after = write(partial(self._launch, run, put, named=True))
            except Conflict:  # the tenant may have another instance of that name
                after = write(partial(self._launch, run, put, named=False))
            self._around.wake()
            return after
        except (BadInput, Forbidden, NotFound) as error:
            return put(run, moved(run, RunPhase.FAILED, now, ended_at=now, problem=error.sentence))
        except TeraflockError as error:  # no room, a quota, a budget: wait for it
            return put(run, replace(run, problem=f"Waiting: {error.sentence}", due_at=now + ROOM_AGAIN))

    def _launch(self, run: Run, put: Put, tx: Transaction, *, named: bool) -> Run | None:
        now = self._around.clock.now()
        actor, project = owner_of(tx, run)
        image = self._image(tx, run)
        order = rules.order_of(run, image)
        if order.mode == SPOT and needs_steady(run, now):
            order = replace(order, mode="on-demand")
        order = order if named else replace(order, name=None)
        (instance,) = self._services.instances_in(tx).launch(actor, project, order)
        after = moved(
            run,
            RunPhase.STARTING,
            now,
            instance_id=instance.id,
            instances=(*run.instances, instance.id),
            problem="",
        )
        return put(run, after, tx)

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

    def starting(self, run: Run, put: Put, instance: Instance, driver: ComputeDriver) -> Run | None:
        now = self._around.clock.now()
        if missing := [each for each in NEEDED if each not in driver.capabilities]:
            why = f"The site `{instance.site}` does not support runs: it lacks `{missing[0]}`"
            return put(run, rules.ending(run, RunPhase.FAILED, now, why))
        needs_setup = rules.has_setup(run.spec) and instance.image == run.spec.image
        return put(run, moved(run, RunPhase.SETUP if needs_setup else RunPhase.COPYING, now))

    def setting_up(
        self, run: Run, put: Put, instance: Instance, guest: RunGuest, driver: ComputeDriver
    ) -> Run | None:
        key = rules.setup_key(run)
        guest.start(key, ("/bin/sh", "-c", rules.setup_script(run.spec)), rules.environment_of(run, {}), [])
        seen = guest.state(key, run.log_guest_bytes)
        run = self._pulls.log(run, seen)
        now = self._around.clock.now()
        if seen.state == "running" or seen.has_more(run.log_guest_bytes):
            return put(run, replace(run, due_at=now + POLL))
        run = replace(run, log_guest_bytes=0)  # the command has a log of its own
        if seen.state != "ended":
            return put(run, rules.lost(run, "Its instance restarted during the setup", now))
        if seen.exit_code:
            why = f"The setup failed with exit code {seen.exit_code}"
            return put(run, rules.ending(run, RunPhase.FAILED, now, why, exit_code=seen.exit_code))
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
        return put(run, moved(run, RunPhase.CACHING, self._around.clock.now(), image_id=image.id), tx)

    def caching(self, run: Run, put: Put) -> Run | None:
        """Wait for the image. A run does not need it itself, so a failure does not matter."""
        with self._around.database.read() as tx:
            image = images.by_id_in_all_projects(tx, run.image_id)
        now = self._around.clock.now()
        if image is not None and image.state == ImageState.WAITING:
            return put(run, replace(run, due_at=now + WAIT))
        return put(run, moved(run, RunPhase.COPYING, now, image_id=""))

    def copying(self, run: Run, put: Put, guest: RunGuest) -> Run | None:
        digest = run.spec.workdir
        if digest and not self._files.received_bytes(run.project_id, digest)[1]:
            why = "Its files are no longer on the server. Start it again with `tera run`"
            return put(run, rules.ending(run, RunPhase.FAILED, self._around.clock.now(), why))
        if guest.state(run.key, 0).state == "absent":
            if not self._is_copied(run, guest):
                self._copy(run, guest)
            with self._around.database.read() as tx:
                sealed = store.sealed_secrets(tx, run.id)
            secrets = {
                name: self._vault.open(text, bound_to=f"{run.id}/{name}") for name, text in sealed.items()
            }
            environment = rules.environment_of(run, secrets)
            folders = [environment["TERA_OUTPUTS"], environment["TERA_CHECKPOINTS"]]
            guest.start(run.key, run.spec.command, environment, folders)
        now = self._around.clock.now()
        return put(run, moved(run, RunPhase.RUNNING, now, running_since=now, pulled_at=now, problem=""))

    def _is_copied(self, run: Run, guest: RunGuest) -> bool:
        """Whether the previous attempt ran on this disk: then its files and checkpoints are newer than the copies."""
        before = replace(run, attempt=run.attempt - 1)
        return run.attempt > 1 and guest.state(before.key, 0).state != "absent"

    def _copy(self, run: Run, guest: RunGuest) -> None:
        if run.spec.workdir:
            guest.put(run.key, self._files.upload(run.project_id, run.spec.workdir), WORK, replace=True)
        with self._around.database.read() as tx:
            kept = store.checkpoints(tx, run.id)
        folder = folder_of(run.spec.checkpoints, CHECKPOINTS)
        for each in kept:
            if not self._files.is_intact(run.id, f"{each.id}.tar", each.digest):
                continue  # damaged, or not in the backup that was restored: an older one may do
            guest.put(run.key, self._files.tar(run.id, f"{each.id}.tar"), folder, replace=False)
