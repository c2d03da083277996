"""The acts of runs: one function for each phase. It looks at instance and guest, does one thing and writes it.

The instance is launched, and an image is made, in the same transaction that writes the run: a crash leaves both or
neither. All other acts can be repeated: what is copied, started or deleted already stays as it is.
"""

import signal
from collections.abc import Callable
from functools import partial
from typing import Final, Protocol

from msgspec.structs import replace

from teraflock.base.errors import BadInput, Conflict, Forbidden, NotFound, Refused, TeraflockError
from teraflock.fleet import store as fleet
from teraflock.image import store as images
from teraflock.image.model import Image, ImageState
from teraflock.image.service import ImageService
from teraflock.instance.across import store as across
from teraflock.instance.driver import Capability, ComputeDriver, Handle
from teraflock.instance.lookup import is_at_rest
from teraflock.instance.machines import handle_of
from teraflock.instance.model import Instance, InstanceId
from teraflock.instance.service import InstanceService
from teraflock.instance.states import Phase, Wanted
from teraflock.reconcile.run_owner import owner_of
from teraflock.reconcile.run_pulls import RunPulls
from teraflock.reconcile.surroundings import Surroundings
from teraflock.run import rules, store
from teraflock.run.files import RunFiles
from teraflock.run.guard import needs_steady
from teraflock.run.guest import CHECKPOINTS, OUTPUTS, WORK, GuestState, RunGuest, folder_of, progress_from
from teraflock.run.model import Run
from teraflock.run.rules import GRACE, POLL, PULL_EVERY, ROOM_AGAIN, WAIT, moved
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


class RunActs:
    def __init__(
        self,
        around: Surroundings,
        services: RunServices,
        instances: InstanceService,
        files: RunFiles,
        vault: Seals,
        *,
        spent: Callable[[Run], int] = lambda run: 0,
    ) -> None:
        """`spent` is what a run has cost so far, in micros of the project's currency."""
        self.around = around
        self._services = services
        self._instances = instances
        self.files = files
        self._vault = vault
        self._spent = spent
        self._pulls = RunPulls(around, files)

    def act(self, run: Run, put: Put) -> Run | None:
        if run.phase == RunPhase.QUEUED:
            return self._queued(run, put)
        with self.around.database.read() as tx:
            instance = across.by_id_in_all_projects(tx, InstanceId(run.instance_id))
        if run.phase == RunPhase.ENDING:
            return self._ending(run, put, instance)
        now = self.around.clock.now()
        verdict = rules.instance_verdict(run, instance, now)
        if verdict is not None:
            return put(run, verdict)
        assert instance is not None
        early = (RunPhase.STARTING, RunPhase.SETUP, RunPhase.CACHING, RunPhase.COPYING)
        if run.wanted == RunWanted.CANCELLED and run.phase in early:
            return put(run, rules.ending(run, RunPhase.CANCELLED, now))
        if instance.phase != Phase.RUNNING or not is_at_rest(instance):
            return put(run, replace(run, due_at=now + WAIT))
        if run.away_since is not None:
            run = replace(run, away_since=None, problem="")
        return self._on_guest(run, put, instance)

    def _on_guest(self, run: Run, put: Put, instance: Instance) -> Run | None:
        driver, handle = self._place(instance)
        guest = RunGuest(driver, handle)
        match run.phase:
            case RunPhase.STARTING:
                return self._starting(run, put, instance, driver)
            case RunPhase.SETUP:
                return self._setting_up(run, put, instance, guest, driver)
            case RunPhase.CACHING:
                return self._caching(run, put)
            case RunPhase.COPYING:
                return self._copying(run, put, guest)
            case RunPhase.RUNNING:
                return self._running(run, put, guest, driver, handle)
            case RunPhase.STOPPING:
                return self._stopping(run, put, guest)
            case _:
                return self._collecting(run, put, guest)

    # Before the command

    def _queued(self, run: Run, put: Put) -> Run | None:
        now = self.around.clock.now()
        if run.wanted == RunWanted.CANCELLED:
            return put(run, moved(run, RunPhase.CANCELLED, now, ended_at=now))
        write = self.around.database.write_with_locks
        try:
            try:
                after = write(partial(self._launch, run, put, named=True))
            except Conflict:  # the tenant may have another instance of that name
                after = write(partial(self._launch, run, put, named=False))
            self.around.wake()
            return after
        except (BadInput, Forbidden, NotFound) as error:
            return put(run, moved(run, RunPhase.FAILED, now, ended_at=now, problem=error.sentence))
        except TeraflockError as error:  # no room, a quota, a budget: wait for it
            return put(run, replace(run, problem=f"Waiting: {error.sentence}", due_at=now + ROOM_AGAIN))

    def _launch(self, run: Run, put: Put, tx: Transaction, *, named: bool) -> Run | None:
        now = self.around.clock.now()
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

    def _starting(self, run: Run, put: Put, instance: Instance, driver: ComputeDriver) -> Run | None:
        now = self.around.clock.now()
        if missing := [each for each in NEEDED if each not in driver.capabilities]:
            why = f"The site `{instance.site}` does not support runs: it lacks `{missing[0]}`"
            return put(run, rules.ending(run, RunPhase.FAILED, now, why))
        needs_setup = rules.has_setup(run.spec) and instance.image == run.spec.image
        return put(run, moved(run, RunPhase.SETUP if needs_setup else RunPhase.COPYING, now))

    def _setting_up(
        self, run: Run, put: Put, instance: Instance, guest: RunGuest, driver: ComputeDriver
    ) -> Run | None:
        key = rules.setup_key(run)
        guest.start(key, ("/bin/sh", "-c", rules.setup_script(run.spec)), rules.environment_of(run, {}), [])
        seen = guest.state(key, run.log_guest_bytes)
        run = self._logged(run, seen)
        now = self.around.clock.now()
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
                return self.around.database.write(partial(self._begin_caching, run, put, instance))
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
        return put(run, moved(run, RunPhase.CACHING, self.around.clock.now(), image_id=image.id), tx)

    def _caching(self, run: Run, put: Put) -> Run | None:
        """Wait for the image. A run does not need it itself, so a failure does not matter."""
        with self.around.database.read() as tx:
            image = images.by_id_in_all_projects(tx, run.image_id)
        now = self.around.clock.now()
        if image is not None and image.state == ImageState.WAITING:
            return put(run, replace(run, due_at=now + WAIT))
        return put(run, moved(run, RunPhase.COPYING, now, image_id=""))

    def _copying(self, run: Run, put: Put, guest: RunGuest) -> Run | None:
        if guest.state(run.key, 0).state == "absent":
            if not self._is_copied(run, guest):
                self._copy(run, guest)
            with self.around.database.read() as tx:
                sealed = store.sealed_secrets(tx, run.id)
            secrets = {
                name: self._vault.open(text, bound_to=f"{run.id}/{name}") for name, text in sealed.items()
            }
            environment = rules.environment_of(run, secrets)
            folders = [environment["TERA_OUTPUTS"], environment["TERA_CHECKPOINTS"]]
            guest.start(run.key, run.spec.command, environment, folders)
        now = self.around.clock.now()
        return put(run, moved(run, RunPhase.RUNNING, now, running_since=now, pulled_at=now, problem=""))

    def _is_copied(self, run: Run, guest: RunGuest) -> bool:
        """Whether the previous attempt ran on this disk: then its files and checkpoints are newer than the copies."""
        before = replace(run, attempt=run.attempt - 1)
        return run.attempt > 1 and guest.state(before.key, 0).state != "absent"

    def _copy(self, run: Run, guest: RunGuest) -> None:
        if run.spec.workdir:
            guest.put(run.key, self.files.upload(run.project_id, run.spec.workdir), WORK, replace=True)
        with self.around.database.read() as tx:
            kept = store.checkpoints(tx, run.id)
        folder = folder_of(run.spec.checkpoints, CHECKPOINTS)
        for each in kept:
            guest.put(run.key, self.files.tar(run.id, f"{each.id}.tar"), folder, replace=False)

    # While it runs

    def _running(
        self, run: Run, put: Put, guest: RunGuest, driver: ComputeDriver, handle: Handle
    ) -> Run | None:
        seen = guest.state(run.key, run.log_guest_bytes)
        run = self._logged(run, seen)
        now = self.around.clock.now()
        run = replace(run, progress=progress_from(seen.progress, run, now))
        if seen.has_more(run.log_guest_bytes):
            return put(run, replace(run, due_at=now))
        if seen.state == "ended":
            return put(run, moved(run, RunPhase.COLLECTING, now, exit_code=seen.exit_code))
        if seen.state == "lost":
            return put(run, self._restarted(run))
        if seen.state == "absent":
            return put(run, rules.lost(run, "Its instance got a new disk", now))
        if reason := self._stop_reason(run, driver, handle):
            outcome, problem = reason
            guest.signal(run.key, signal.SIGTERM)
            return put(run, moved(run, RunPhase.STOPPING, now, outcome=outcome, problem=problem))
        problem = ""
        if run.pulled_at is None or now - run.pulled_at >= PULL_EVERY:
            problem = self._pull_checkpoints(run, guest)
            run = replace(run, pulled_at=now)
        return put(run, replace(run, due_at=now + POLL, tries=0, problem=problem or run.problem))

    def _pull_checkpoints(self, run: Run, guest: RunGuest) -> str:
        """Copy new checkpoints. The command continues if they cannot be kept; the owner reads why."""
        try:
            self._pulls.checkpoints(run, guest)
        except Refused as error:
            return f"Checkpoints are not copied: {error.sentence}"
        return ""

    def _restarted(self, run: Run) -> Run:
        """The guest restarted and kept its disk: start the command again there."""
        now = self.around.clock.now()
        if run.attempt >= run.spec.attempts_max:
            return rules.lost(run, "Its instance restarted", now)
        return rules.again(moved(run, RunPhase.STARTING, now))

    def _stop_reason(self, run: Run, driver: ComputeDriver, handle: Handle) -> tuple[RunPhase, str] | None:
        if run.wanted == RunWanted.CANCELLED:
            return RunPhase.CANCELLED, ""
        budget = run.spec.budget_micros
        if budget is not None and self._spent(run) >= budget:
            return (
                RunPhase.FAILED,
                "It reached its budget. `tera run retry` continues it from its last checkpoint",
            )
        if self._is_unsafe(run):
            return RunPhase.QUEUED, "It moves to an on-demand machine to keep its deadline"
        if Capability.NOTICE in driver.capabilities:
            seen = driver.look(handle)
            if seen is not None and seen.leaving_at is not None:
                return RunPhase.QUEUED, "The provider reclaims its machine"
        return None

    def _is_unsafe(self, run: Run) -> bool:
        """Whether it is on a spot machine and can keep its deadline only on another one."""
        if run.spec.mode != SPOT or run.spec.deadline is None:
            return False
        with self.around.database.read() as tx:
            instance = across.by_id_in_all_projects(tx, InstanceId(run.instance_id))
        is_spot = instance is not None and instance.spec.mode == SPOT
        return is_spot and needs_steady(run, self.around.clock.now())

    def _stopping(self, run: Run, put: Put, guest: RunGuest) -> Run | None:
        seen = guest.state(run.key, run.log_guest_bytes)
        run, now = self._logged(run, seen), self.around.clock.now()
        if seen.has_more(run.log_guest_bytes):
            return put(run, replace(run, due_at=now))
        if seen.state != "running":
            return put(run, moved(run, RunPhase.COLLECTING, now, exit_code=seen.exit_code))
        if now - run.since >= GRACE:
            guest.signal(run.key, signal.SIGKILL)
        return put(run, replace(run, due_at=now + WAIT))

    def _logged(self, run: Run, seen: GuestState) -> Run:
        written = self.files.append_log(run.id, run.log_bytes, seen.log)
        return replace(run, log_bytes=written, log_guest_bytes=run.log_guest_bytes + len(seen.log))

    # After the command

    def _collecting(self, run: Run, put: Put, guest: RunGuest) -> Run | None:
        self._pulls.checkpoints(run, guest)
        if run.outcome != RunPhase.QUEUED:
            size = self._pulls.outputs(run, guest, folder_of(run.spec.outputs, OUTPUTS))
            run = replace(run, outputs_bytes=size)
        outcome, problem = rules.outcome_of(run)
        return put(run, rules.ending(run, outcome, self.around.clock.now(), problem))

    def _ending(self, run: Run, put: Put, instance: Instance | None) -> Run | None:
        now = self.around.clock.now()
        wanted = Wanted.STOPPED if run.keeps_instance else Wanted.GONE
        is_gone = instance is None or instance.phase == Phase.GONE
        if instance is not None and not is_gone and instance.wanted not in (wanted, Wanted.GONE):
            with self.around.database.read() as tx:
                actor, project = owner_of(tx, run, anyone=True)
            if run.keeps_instance:
                self._instances.end(actor, project, instance.id)
            else:
                self._instances.delete(actor, project, instance.id)
            return put(run, replace(run, due_at=now))
        is_enough = is_gone or run.outcome == RunPhase.QUEUED or run.keeps_instance
        if is_enough or now - run.since >= rules.END_MAX:
            return put(run, rules.after_ending(run, now))
        return put(run, replace(run, due_at=now + WAIT))

    def _place(self, instance: Instance) -> tuple[ComputeDriver, Handle]:
        with self.around.database.read() as tx:
            host = fleet.host(tx, instance.host_id or "")
        return self.around.engines.at(instance.site), handle_of(instance, host)
