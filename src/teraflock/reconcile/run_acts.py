"""The acts of runs: one function for each phase. It looks at instance and guest, does one thing and writes it.

Every act can be repeated: what is copied, started or deleted already stays as it is. `run_starts.py` has those before
the command.
"""

import signal
from collections.abc import Callable

from msgspec.structs import replace

from teraflock.base.errors import Refused
from teraflock.fleet import store as fleet
from teraflock.instance.across import store as across
from teraflock.instance.driver import Capability, ComputeDriver, Handle
from teraflock.instance.lookup import is_at_rest
from teraflock.instance.machines import handle_of
from teraflock.instance.model import Instance, InstanceId
from teraflock.instance.service import InstanceService
from teraflock.instance.states import Phase, Wanted
from teraflock.reconcile.run_owner import owner_of
from teraflock.reconcile.run_pulls import RunPulls
from teraflock.reconcile.run_starts import SPOT, Put, RunServices, RunStarts
from teraflock.reconcile.surroundings import Surroundings
from teraflock.run import rules
from teraflock.run.files import RunFiles
from teraflock.run.guard import needs_steady
from teraflock.run.guest import OUTPUTS, RunGuest, folder_of, progress_from
from teraflock.run.model import Run
from teraflock.run.rules import GRACE, POLL, PULL_EVERY, WAIT, moved
from teraflock.run.service import Seals
from teraflock.run.states import RunPhase, RunWanted


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
        self._instances = instances
        self.files = files
        self._spent = spent
        self._pulls = RunPulls(around, files)
        self._starts = RunStarts(around, services, files, vault, self._pulls)

    def act(self, run: Run, put: Put) -> Run | None:
        if run.phase == RunPhase.QUEUED:
            return self._starts.queued(run, put)
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
                return self._starts.starting(run, put, instance, driver)
            case RunPhase.SETUP:
                return self._starts.setting_up(run, put, instance, guest, driver)
            case RunPhase.CACHING:
                return self._starts.caching(run, put)
            case RunPhase.COPYING:
                return self._starts.copying(run, put, guest)
            case RunPhase.RUNNING:
                return self._running(run, put, guest, driver, handle)
            case RunPhase.STOPPING:
                return self._stopping(run, put, guest)
            case _:
                return self._collecting(run, put, guest)

    # While it runs

    def _running(
        self, run: Run, put: Put, guest: RunGuest, driver: ComputeDriver, handle: Handle
    ) -> Run | None:
        seen = guest.state(run.key, run.log_guest_bytes)
        run = self._pulls.log(run, seen)
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
        run, now = self._pulls.log(run, seen), self.around.clock.now()
        if seen.has_more(run.log_guest_bytes):
            return put(run, replace(run, due_at=now))
        if seen.state != "running":
            return put(run, moved(run, RunPhase.COLLECTING, now, exit_code=seen.exit_code))
        if now - run.since >= GRACE:
            guest.signal(run.key, signal.SIGKILL)
        return put(run, replace(run, due_at=now + WAIT))

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
