"""Decisions about runs. Pure: no clock, no SQL, no engine.

`moved` is the only way to change a phase. An attempt ends in one of three ways: the command ended, the run was asked to
stop, or its instance was lost. Only a lost instance leads to another attempt.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from hashlib import sha256
from statistics import median
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from teraflock.base.errors import BadInput, TeraflockError, Unavailable
from teraflock.base.names import check_variable
from teraflock.dataset.model import FOLDER
from teraflock.instance.archive import TooLarge, checked_path
from teraflock.instance.model import Access, Instance, RestartPolicy
from teraflock.instance.naming import numbered
from teraflock.instance.orders import Order
from teraflock.instance.states import Phase, Wanted
from teraflock.run.checkpoint import checkpoint_every_seconds, expected_loss_hours
from teraflock.run.guest import CHECKPOINTS, LIBRARY, OUTPUTS, WORK, folder_of
from teraflock.run.model import Run, RunNode, RunSpec
from teraflock.run.states import OVER, RUN_MOVES, RunPhase, RunWanted

AWAY_MAX: Final = timedelta(minutes=5)
"""How long a run waits for a host that does not answer. A host that reboots is back sooner."""
GRACE: Final = timedelta(seconds=30)
KILLED_MAX: Final = timedelta(seconds=90)
"""After SIGTERM. A program that waits for a broken device survives SIGKILL, and a guest may only say that it runs."""
"""How long a command may take to end after SIGTERM."""
END_MAX: Final = timedelta(seconds=120)
"""How long a run that is over waits until its instance is gone. The deletion continues without it."""
PULL_EVERY: Final = timedelta(seconds=20)
POLL: Final = timedelta(seconds=1)
WAIT: Final = timedelta(seconds=0.2)
ROOM_AGAIN: Final = timedelta(seconds=5)
"""How often a queued run looks for room."""
TRIES_MAX: Final = 6
STOP_TRIES_MAX: Final = 3
"""Of looks into a guest whose command has to stop. Then the run ends without its last checkpoints."""
RETRY_MAX: Final = timedelta(seconds=60)
LABEL: Final = "tera/run"
RESERVED: Final = "TERA_"
NODES_MAX: Final = 32
NOT_RENTED: Final = "Rented machines have no private network between them, which several nodes need"


def moved(run: Run, phase: RunPhase, now: datetime, **changes: Any) -> Run:
    if phase not in RUN_MOVES[run.phase]:
        raise ValueError(f"a run cannot go from {run.phase} to {phase}")
    return replace(run, phase=phase, since=now, due_at=now, tries=0, **changes)


def ending(run: Run, outcome: RunPhase, now: datetime, problem: str = "", **changes: Any) -> Run:
    """End this attempt. A run that waits to be tried again, but has no attempts left, fails."""
    if outcome == RunPhase.QUEUED and run.attempt >= run.spec.attempts_max:
        outcome, problem = RunPhase.FAILED, f"{problem}. It used all of its {run.spec.attempts_max} attempts"
    return moved(run, RunPhase.ENDING, now, outcome=outcome, problem=problem or run.problem, **changes)


def lost(run: Run, why: str, now: datetime) -> Run:
    """Its instance is lost. A cancelled run ends; any other is tried again."""
    outcome = RunPhase.CANCELLED if run.wanted == RunWanted.CANCELLED else RunPhase.QUEUED
    if run.phase == RunPhase.COLLECTING and run.exit_code is not None:
        return ending(run, RunPhase.QUEUED, now, f"{why} before its outputs were copied", exit_code=None)
    return ending(run, outcome, now, why)


def after_ending(run: Run, now: datetime) -> Run:
    """The run once its instance is gone, or while it is being deleted by itself."""
    outcome = run.outcome or RunPhase.FAILED
    if outcome != RunPhase.QUEUED:
        return moved(run, outcome, now, ended_at=now, outcome=None, away_since=None)
    return again(moved(run, RunPhase.QUEUED, now, outcome=None, instance_id="", away_since=None))


def again(run: Run) -> Run:
    """The next attempt."""
    return replace(
        run,
        attempt=run.attempt + 1,
        log_guest_bytes=0,
        exit_code=None,
        running_since=None,
        pulled_at=None,
        progress=None
        if run.progress is None
        else replace(run.progress, first_at=None, before_seconds=step_seconds(run)),
    )


def excused(run: Run) -> Run:
    """The run when it leaves its machine without a fault of its command: that does not use up an attempt."""
    return replace(run, spec=replace(run.spec, attempts_max=run.spec.attempts_max + 1))


def retried(run: Run, now: datetime, budget_micros: int | None = None) -> Run:
    """A run that is over, queued again from its last checkpoint, with as many attempts as at first."""
    budget = run.spec.budget_micros if budget_micros is None else budget_micros
    spec = replace(run.spec, attempts_max=run.attempt + run.spec.attempts_max, budget_micros=budget)
    fresh = again(moved(run, RunPhase.QUEUED, now, instance_id="", ended_at=None, problem=""))
    return replace(fresh, spec=spec, wanted=RunWanted.DONE, outputs_bytes=None, keeps_instance=False)


def instance_verdict(run: Run, instance: Instance | None, now: datetime) -> Run | None:
    """The run after a look at its instance, for phases before `ending`. None: the instance is there, or will be."""
    if instance is None or instance.phase == Phase.GONE or instance.wanted == Wanted.GONE:
        return _stopped(run, "deleted", now)
    if instance.phase == Phase.FAILED:
        return lost(run, f"Its instance failed: {instance.problem or 'no reason given'}", now)
    if instance.preemptible is not None and instance.preemptible.waits_since is not None:
        return lost(run, "Others needed its GPUs", now)
    if instance.wanted == Wanted.STOPPED:
        return _stopped(run, "stopped", now)
    if instance.phase == Phase.AWAY:
        since = run.away_since or now
        if now - since >= AWAY_MAX:
            return lost(run, "Its host does not answer", now)
        return replace(run, away_since=since, due_at=now + POLL, problem="Its host does not answer. Waiting")
    return None


def _stopped(run: Run, how: str, now: datetime) -> Run:
    if run.wanted == RunWanted.CANCELLED:
        return ending(run, RunPhase.CANCELLED, now)
    return ending(run, RunPhase.FAILED, now, f"Its instance was {how}. `tera run retry` continues it")


def failed_act(run: Run, error: Exception, now: datetime, *, spent: bool = False) -> Run:
    """The run after an act raised: try again later, and give up on errors that will not pass. `spent`: its budget is.

    Instances cost money: their deletion is never given up, and a guest that does not answer cannot put off an end.
    """
    deletes = run.phase == RunPhase.ENDING and not run.keeps_instance
    tries = TRIES_MAX if isinstance(error, TooLarge) else run.tries + 1
    stops = run.phase == RunPhase.STOPPING or (
        run.phase == RunPhase.RUNNING and (spent or run.wanted == RunWanted.CANCELLED)
    )
    tries_max = STOP_TRIES_MAX if stops else TRIES_MAX
    if tries >= tries_max and not isinstance(error, Unavailable) and not deletes:
        return _given_up(run, _sentence(error), now)
    return put_off(run, error, now)


def put_off(run: Run, error: Exception, now: datetime) -> Run:
    """The run whose act raised, tried again later."""
    tries = run.tries + 1
    delay = min(RETRY_MAX, timedelta(seconds=0.5) * 2 ** min(tries, 8))
    shown = _sentence(error) if tries > 2 else run.problem
    return replace(run, tries=tries, problem=shown, due_at=now + delay)


def _sentence(error: Exception) -> str:
    return error.sentence if isinstance(error, TeraflockError) else "Internal error in Teraflock"


def _given_up(run: Run, sentence: str, now: datetime) -> Run:
    if run.phase == RunPhase.QUEUED:
        return moved(run, RunPhase.FAILED, now, ended_at=now, problem=sentence)
    if run.phase == RunPhase.COLLECTING:
        problem = f"Its outputs could not be copied: {sentence}. They are still on its instance"
        return ending(run, RunPhase.FAILED, now, problem, keeps_instance=True)
    if run.phase == RunPhase.ENDING:
        return after_ending(run, now)
    if run.phase == RunPhase.STOPPING and run.outcome is not None:
        return ending(run, run.outcome, now, run.problem or sentence)
    return lost(run, sentence, now)


def outcome_of(run: Run) -> tuple[RunPhase, str]:
    """What a run comes to when its command has ended and its outputs are copied."""
    if run.outcome is not None:
        return run.outcome, run.problem
    if run.exit_code == 0:
        return RunPhase.DONE, ""
    return RunPhase.FAILED, f"The command ended with exit code {run.exit_code}"


# The order and the environment of its instance


def has_setup(spec: RunSpec) -> bool:
    return bool(spec.setup or spec.requirements)


def setup_script(spec: RunSpec) -> str:
    """The shell script of the setup. Requirements come in a here-document, so they need no quoting."""
    lines = ["set -e"]
    if spec.requirements:
        mark = f"REQUIREMENTS_{sha256(spec.requirements.encode()).hexdigest()[:16]}"
        install = "/opt/run/bin/pip install --disable-pip-version-check -r /opt/run/requirements.txt"
        lines += [
            "python3 -m venv --system-site-packages /opt/run",
            f"cat > /opt/run/requirements.txt <<'{mark}'",
        ]
        lines += [spec.requirements, mark, install]
    return "\n".join([*lines, spec.setup]) + "\n"


def cache_name(spec: RunSpec, image_id: str) -> str:
    """The name of the image with the finished setup: the same for the same image and setup."""
    content = image_id + "\n" + setup_script(spec)
    return f"run-{sha256(content.encode()).hexdigest()[:20]}"


def setup_key(run: Run) -> str:
    return f"{run.id}-setup.1"


def launched(run: Run, instance_ids: Sequence[str], now: datetime) -> Run:
    """The run with its new instances, one for each node. The logs of its nodes continue."""
    first, *others = instance_ids
    before = {number: each.log_bytes for number, each in enumerate(run.others)}
    return moved(
        run,
        RunPhase.STARTING,
        now,
        instance_id=first,
        others=tuple(
            RunNode(instance_id=each, log_bytes=before.get(number, 0)) for number, each in enumerate(others)
        ),
        instances=(*run.instances, *instance_ids),
        problem="",
    )


def order_names(run: Run) -> tuple[str, str]:
    """The name of its instance, and another one if the tenant has an instance of that name."""
    name = f"{run.name[:46]}-{run.attempt}"
    return name, f"{name}-{run.id[-6:]}"


def is_launched_for(run: Run, instance: Instance) -> bool:
    """Whether an instance with the label of a run was launched for it and not noted yet. Tenants can set labels too."""
    names = {name for each in order_names(run) for name in numbered(each, run.spec.nodes)}
    is_own = instance.name in names and instance.created_by == run.created_by
    return is_own and instance.id not in run.instances and instance.wanted != Wanted.GONE


def with_left(run: Run, found: Sequence[Instance]) -> tuple[Run, list[str]]:
    """A run that is over, with the instances that the queue launched for it meanwhile, which count in its cost; and the
    ids of everything of it that must still be deleted. `found` are the instances with its label that are not gone."""
    new = [each.id for each in found if is_launched_for(run, each)]
    kept = run.instance_id if run.keeps_instance else ""
    noted = [each.id for each in found if each.id in run.instances and each.wanted != Wanted.GONE]
    return replace(run, instances=(*run.instances, *new)), sorted({*new, *noted} - {kept})


def order_of(run: Run, image: str) -> Order:
    spec = run.spec
    is_rented = bool(spec.type or spec.provider)
    return Order(
        name=order_names(run)[0],
        instances=spec.nodes,
        shape=spec.shape,
        image=image,
        access=Access.SSH,
        labels={LABEL: run.id},
        mode=spec.mode,
        bid_micros_per_hour=spec.bid_micros_per_hour,
        price_limit_micros_per_hour=spec.price_limit_micros_per_hour,
        offer=spec.offer,
        priority=spec.priority,
        queue=bool(spec.priority),
        site=spec.site,
        provider=spec.provider,
        type=spec.type,
        region=spec.region,
        burst=spec.burst,
        data=spec.data,
        copies_data=True,
        restart_policy=RestartPolicy.ELSEWHERE if is_rented else RestartPolicy.SAME_HOST,
    )


def script_of(spec: RunSpec) -> tuple[str, ...]:
    """Identifies what a run does: the digest of its script and arguments, otherwise its files and its command."""
    digest = spec.estimate.script if spec.estimate else ""
    return (digest,) if digest else (spec.workdir, *spec.command)


def environment_of(run: Run, secrets: Mapping[str, str]) -> dict[str, str]:
    spec = run.spec
    return {
        "HOME": "/root",
        "LANG": "C.UTF-8",
        "PATH": "/opt/run/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "PYTHONUNBUFFERED": "1",
        "PYTHONPATH": f"{WORK}:{LIBRARY}",
        **spec.environment,
        **secrets,
        "TERA_DATA": FOLDER,
        "TERA_RUN": run.id,
        "TERA_ATTEMPT": str(run.attempt),
        "TERA_WORKDIR": WORK,
        "TERA_OUTPUTS": folder_of(spec.outputs, OUTPUTS),
        "TERA_CHECKPOINTS": folder_of(spec.checkpoints, CHECKPOINTS),
        "TERA_CHECKPOINT_EVERY": str(
            run.save_every_seconds or checkpoint_every_seconds(expected_loss_hours(spec.mode))
        ),
    }


def check_spec(spec: RunSpec) -> None:
    """Refuse what cannot be run, before anything is stored."""
    if not 1 <= spec.nodes <= NODES_MAX:
        raise BadInput(f"A run cannot have {spec.nodes} nodes", hint=f"Use 1 to {NODES_MAX}")
    if spec.nodes > 1 and (spec.type or spec.provider):
        raise BadInput(NOT_RENTED, hint="Leave out `--nodes`, or use own hosts")
    if not spec.command or not spec.command[0].strip():
        raise BadInput(
            "A run needs a command", hint="For example `tera run train.py` or `tera run -- ./train.sh`"
        )
    for name in (*spec.environment, *spec.secrets):
        check_variable(name)
        if name.startswith(RESERVED):
            raise BadInput(f"`{name[:80]}` is set by Teraflock", hint=f"Use a name without `{RESERVED}`")
    for path in (spec.outputs, spec.checkpoints):
        checked_path(folder_of(path, OUTPUTS))
    texts = (*spec.command, *spec.environment.values(), spec.setup, spec.requirements)
    if any("\0" in text for text in texts):
        raise BadInput("A text contains a NUL character", hint="Remove it")


def is_over(run: Run) -> bool:
    return run.phase in OVER


def usual_step_seconds(run: Run) -> float | None:
    """The time of a step alone: the median leaves out the reports between which a checkpoint was saved."""
    paces = run.progress.paces if run.progress else ()
    return median(paces) if paces else step_seconds(run)


def step_seconds(run: Run) -> float | None:
    """The mean time of a step in this attempt, or in the one before, with everything that the command does between
    steps. None: not enough was reported."""
    seen = run.progress
    if seen is None:
        return None
    if seen.first_at is None or seen.at is None or seen.step <= seen.first_step:
        return seen.before_seconds
    return (seen.at - seen.first_at).total_seconds() / (seen.step - seen.first_step)


class RunCost(msgspec.Struct, frozen=True, kw_only=True):
    """What the instances of a run cost so far."""

    currency: str
    micros: int
    micros_per_hour: int
