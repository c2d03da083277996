"""The acts of runs: one function for each phase. It looks at instance and guest, does one thing and writes it.

Every act can be repeated: what is copied, started or deleted already stays as it is. `run_starts.py` has those before
the command.
"""

import logging
import signal
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Final

from msgspec.structs import replace

from teraflock.base.errors import TeraflockError, Unavailable
from teraflock.dataset.files import DatasetFiles
from teraflock.fleet import store as fleet
from teraflock.instance.across import store as across
from teraflock.instance.driver import Capability, ComputeDriver, Handle
from teraflock.instance.lookup import is_at_rest
from teraflock.instance.machines import handle_of
from teraflock.instance.model import Instance, InstanceId
from teraflock.instance.service import InstanceService
from teraflock.instance.states import Phase, Wanted
from teraflock.reconcile.run_choices import RunChoices
from teraflock.reconcile.run_gangs import RunGangs
from teraflock.reconcile.run_owner import owner_of
from teraflock.reconcile.run_pulls import RunPulls
from teraflock.reconcile.run_starts import SPOT_MODE, Put, RunServices, RunStarts
from teraflock.reconcile.surroundings import Surroundings
from teraflock.run import nodes, rules
from teraflock.run.bucket import RunBuckets
from teraflock.run.choice import RunPricing
from teraflock.run.files import RunFiles
from teraflock.run.guard import SPOT, STEADY
from teraflock.run.guest import OUTPUTS, GuestState, RunGuest, folder_of, progress_of
from teraflock.run.model import Run
from teraflock.run.nodes import nodes_of
from teraflock.run.rules import GRACE, KILLED_MAX, POLL, PULL_EVERY, WAIT, moved
from teraflock.run.service import Seals
from teraflock.run.states import RunPhase, RunWanted

LOG: Final = logging.getLogger("teraflock.reconcile")
SPENT: Final = "It reached its budget. `tera run retry --budget AMOUNT` continues it with a larger one"
SWEEP_SPENT: Final = "The runs of its sweep reached their budget together"
NOT_COPIED: Final = "Checkpoints are not copied"
DISK_FULL: Final = "The disk of its instance was full, so output may be missing: give it more with `--disk`"
CHECKPOINT_TRIES: Final = 2
"""How often the copy of the last checkpoints is repeated. After that the outputs are copied without them."""
LOOK_EVERY: Final = timedelta(minutes=1)
"""How often a run on demand that asked for spot looks whether spot is there again."""
LOOKED_MAX: Final = 10_000


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
        dataset_files: DatasetFiles | None = None,
        prices: Callable[[Run], RunPricing | None] = lambda run: None,
        buckets: RunBuckets | None = None,
    ) -> None:
        """`spent` is what a run has cost so far, in micros of the project's currency. `prices` is what its instance
        costs on spot and on demand. None: unknown. `buckets` are those of the regions of rented machines."""
        self.around = around
        self._instances = instances
        self.files = files
        self._spent = spent
        self.buckets = {} if buckets is None else buckets
        self._pulls = RunPulls(around, files, self.buckets)
        self._choices = RunChoices(around, prices)
        self._starts = RunStarts(
            around, services, instances, files, vault, self._pulls, self._choices, dataset_files, self.buckets
        )
        self._gangs = RunGangs(around, services, self._starts, self._pulls, self._guest)
        self.let_go = self._starts.let_go
        self._looked: dict[str, datetime] = {}
        """When a run on demand last looked for spot."""

    def act(self, run: Run, put: Put) -> Run | None:
        if run.phase == RunPhase.QUEUED:
            if run.wanted != RunWanted.CANCELLED and self.is_spent(run):
                now, problem = self.around.clock.now(), SWEEP_SPENT if run.sweep else SPENT
                return put(run, moved(run, RunPhase.FAILED, now, ended_at=now, problem=problem))
            return self._starts.queued(run, put)
        with self.around.database.read() as tx:
            found = [across.by_id_in_all_projects(tx, InstanceId(node.instance_id)) for node in nodes_of(run)]
        instances = [each for each in found if each is not None]
        if run.phase == RunPhase.ENDING:
            return self._ending(run, put, instances)
        now = self.around.clock.now()
        verdict = nodes.verdict(run, found, now)
        if verdict is not None:
            if verdict.outcome == RunPhase.QUEUED:
                if any(each.spec.mode == SPOT_MODE for each in instances):
                    self._choices.note(run, up=False)
                if (after := self._gangs.replaced(run, put, found)) is not None:
                    return after
            return put(run, verdict)
        early = (RunPhase.STARTING, RunPhase.SETUP, RunPhase.CACHING, RunPhase.COPYING)
        if run.wanted == RunWanted.CANCELLED and run.phase in early:
            return put(run, rules.ending(run, RunPhase.CANCELLED, now))
        if any(each.phase != Phase.RUNNING or not is_at_rest(each) for each in instances):
            return put(run, replace(run, due_at=now + WAIT))
        if run.away_since is not None:
            run = replace(run, away_since=None, problem="")
        return self._on_guests(run, put, instances)

    def _on_guests(self, run: Run, put: Put, instances: Sequence[Instance]) -> Run | None:
        first, driver = instances[0], self._place(instances[0])[0]
        guests = [self._guest(each) for each in instances]
        match run.phase:
            case RunPhase.STARTING:
                return self._starts.starting(run, put, first, guests[0], driver)
            case RunPhase.SETUP:
                return self._starts.setting_up(run, put, first, guests, driver)
            case RunPhase.CACHING:
                return self._starts.caching(run, put)
            case RunPhase.COPYING:
                return self._starts.copying(run, put, instances, guests)
            case RunPhase.RUNNING:
                return self._running(run, put, guests, instances)
            case RunPhase.STOPPING:
                return self._stopping(run, put, guests)
            case _:
                return self._collecting(run, put, guests[0])

    # While it runs

    def _running(
        self, run: Run, put: Put, guests: Sequence[RunGuest], instances: Sequence[Instance]
    ) -> Run | None:
        run, seen, has_more = self._pulls.states(run, run.key, guests)
        now, states = self.around.clock.now(), {each.state for each in seen}
        run = replace(run, progress=progress_of(seen[0], run, now))
        if has_more:
            return put(run, replace(run, due_at=now))
        if nodes.failed_nodes(seen) and len(guests) > 1:
            # The others are asked once more: an error may only show that another node is lost.
            states = {guest.state(run.key, 1 << 50).state for guest in guests}
        if "lost" in states or ("absent" in states and nodes.may_lose_disks(run)):
            return put(run, self._restarted(run, guests))
        if "absent" in states:
            return put(run, rules.lost(run, "Its instance got a new disk", now))
        if ended := self._ended(run, seen):
            return put(run, ended)
        instance, guest = instances[0], guests[0]
        if reason := self._stop_reason(run, instances):
            outcome, problem = reason
            run = rules.excused(run) if outcome == RunPhase.QUEUED else run
            return put(
                run, moved(run, RunPhase.STOPPING, now, outcome=outcome, problem=problem, is_term_sent=False)
            )
        problem = "" if run.tries else run.problem  # it told of an error that has passed
        if run.pulled_at is None or now - run.pulled_at >= PULL_EVERY:
            before = "" if problem.startswith(NOT_COPIED) else problem
            problem = self._pull_checkpoints(run, guest) or before
            if instance.spec.mode == SPOT_MODE:
                self._choices.note(run, up=True)
            run = replace(run, pulled_at=now)
        return put(run, replace(run, due_at=now + POLL, tries=0, problem=problem))

    def _pull_checkpoints(self, run: Run, guest: RunGuest) -> str:
        """Copy new checkpoints. The command continues if they cannot be kept; the owner reads why."""
        try:
            problem = self._pulls.checkpoints(run, guest)
            return f"{NOT_COPIED}: {problem}" if problem else ""
        except Unavailable:
            raise
        except TeraflockError as error:
            return f"{NOT_COPIED}: {error.sentence}"
        except OSError as error:
            LOG.warning("%s: checkpoints cannot be written: %s", run.id, error.strerror)
            return f"{NOT_COPIED}: the server cannot write files now"

    def _ended(self, run: Run, seen: Sequence[GuestState]) -> Run | None:
        """The run if its command ended: on all nodes, or with an error on one, after which the others are stopped."""
        now, failed = self.around.clock.now(), nodes.failed_nodes(seen)
        code = seen[failed[0]].exit_code if failed else 0
        if all(each.state == "ended" for each in seen):
            run = moved(run, RunPhase.COLLECTING, now, exit_code=code)
        elif failed:
            run = moved(run, RunPhase.STOPPING, now, exit_code=code, is_term_sent=False)
        else:
            return None
        if failed and len(seen) > 1:
            run = replace(run, outcome=RunPhase.FAILED, problem=nodes.failure_text(failed, code))
        return run

    def _restarted(self, run: Run, guests: Sequence[RunGuest]) -> Run:
        """A guest restarted and kept its disk: start the command again there, and on all other nodes."""
        now = self.around.clock.now()
        if len(guests) > 1:
            self._gangs.stop(run, dict(enumerate(guests)))
        if not nodes.may_restart(run):
            return rules.lost(run, "Its instance restarted", now)
        return nodes.with_replaced(run, {}, now)

    def _stop_reason(self, run: Run, instances: Sequence[Instance]) -> tuple[RunPhase, str] | None:
        if run.wanted == RunWanted.CANCELLED:
            return RunPhase.CANCELLED, ""
        if self.is_spent(run):
            return RunPhase.FAILED, SWEEP_SPENT if run.sweep else SPENT
        if any(each.preemptible and each.preemptible.leaving_at is not None for each in instances):
            self._choices.note(run, up=False)
            return RunPhase.QUEUED, "Others need its GPUs"
        if run.spec.mode == SPOT_MODE and (why := self._better_place(run, instances[0])):
            return RunPhase.QUEUED, why
        if any(map(self._is_reclaimed, instances)):
            return RunPhase.QUEUED, "The provider reclaims its machine"
        return None

    def _is_reclaimed(self, instance: Instance) -> bool:
        driver, handle = self._place(instance)
        if Capability.NOTICE not in driver.capabilities:
            return False
        try:
            seen = driver.look(handle)
        except Unavailable:  # the provider does not answer, but its machine may: its checkpoints are copied
            return False
        return seen is not None and seen.leaving_at is not None

    def is_spent(self, run: Run) -> bool:
        budget = run.spec.budget_micros
        return budget is not None and self._spent(run) >= budget

    def _better_place(self, run: Run, instance: Instance) -> str:
        """Why a run that asked for spot should move: on demand for its deadline, or back. Empty: it stays."""
        if instance.spec.mode == SPOT_MODE:
            moves = self._choices.next_place(run, SPOT, up=True).place == STEADY
            return "It moves to an on-demand machine to keep its deadline" if moves else ""
        now = self.around.clock.now()
        if run.spec.deadline is None or now - self._looked.get(run.id, run.since) < LOOK_EVERY:
            return ""
        if len(self._looked) > LOOKED_MAX:
            self._looked.clear()
        self._looked[run.id] = now
        is_free = self._starts.finds_spot(run)
        self._choices.note(run, up=is_free)
        moves = self._choices.next_place(run, STEADY, up=is_free).place == SPOT
        return "It moves to a spot machine, which is cheaper" if moves and is_free else ""

    def _stopping(self, run: Run, put: Put, guests: Sequence[RunGuest]) -> Run | None:
        run, seen, has_more = self._pulls.states(run, run.key, guests)
        now = self.around.clock.now()
        if has_more:
            return put(run, replace(run, due_at=now))
        if all(each.state != "running" for each in seen) or now - run.since >= KILLED_MAX:
            code = seen[0].exit_code if run.exit_code is None else run.exit_code
            return put(run, moved(run, RunPhase.COLLECTING, now, exit_code=code))
        if not run.is_term_sent:  # only now: why the command ended is written first
            self._signal(run, guests, signal.SIGTERM)
            return put(run, replace(run, is_term_sent=True, due_at=now + WAIT))
        if now - run.since >= GRACE:
            self._signal(run, guests, signal.SIGKILL)
        return put(run, replace(run, due_at=now + WAIT))

    def _signal(self, run: Run, guests: Sequence[RunGuest], number: int) -> None:
        for guest in guests:
            guest.signal(run.key, number)

    # After the command

    def _collecting(self, run: Run, put: Put, guest: RunGuest) -> Run | None:
        told, now = self._pull_checkpoints(run, guest), self.around.clock.now()
        if told and run.tries < CHECKPOINT_TRIES:
            return put(run, replace(run, tries=run.tries + 1, due_at=now + POLL))
        if run.outcome != RunPhase.QUEUED:
            size = self._pulls.outputs(run, guest, folder_of(run.spec.outputs, OUTPUTS))
            seen = guest.state(run.key, 0)
            if run.outcome is None and seen.state == "absent":
                # The guest was deleted and made again with an empty disk after the command ended.
                return put(run, rules.lost(run, "Its instance lost its disk", now))
            told = ". ".join(filter(None, (DISK_FULL if seen.is_full else "", told)))
            run = replace(run, outputs_bytes=size)
        outcome, problem = rules.outcome_of(run)
        said = ". ".join(filter(None, (problem, told)))
        return put(run, rules.ending(replace(run, problem=""), outcome, self.around.clock.now(), said))

    def _ending(self, run: Run, put: Put, instances: Sequence[Instance]) -> Run | None:
        now = self.around.clock.now()
        there = [each for each in instances if each.phase != Phase.GONE]
        asked = False
        for instance in there:
            keeps = run.keeps_instance and instance.id == run.instance_id  # node 0 has the outputs
            if instance.wanted not in (Wanted.STOPPED if keeps else Wanted.GONE, Wanted.GONE):
                asked = True
                with self.around.database.read() as tx:
                    actor, project = owner_of(tx, run, anyone=True)
                (self._instances.end if keeps else self._instances.delete)(actor, project, instance.id)
        if asked:
            return put(run, replace(run, due_at=now))
        is_enough = not there or run.outcome == RunPhase.QUEUED or run.keeps_instance
        if is_enough or now - run.since >= rules.END_MAX:
            return put(run, rules.after_ending(run, now))
        return put(run, replace(run, due_at=now + WAIT))

    def _guest(self, instance: Instance) -> RunGuest:
        rental = instance.spec.rental
        with self.around.database.read() as tx:
            host = fleet.host(tx, instance.host_id or "") if rental and self.buckets else None
        near = host.region if host and host.region in self.buckets else ""
        return RunGuest(*self._place(instance), near)

    def _place(self, instance: Instance) -> tuple[ComputeDriver, Handle]:
        with self.around.database.read() as tx:
            host = fleet.host(tx, instance.host_id or "")
        return self.around.engines.at(instance.site), handle_of(instance, host)
