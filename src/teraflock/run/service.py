"""The run service for the edges: create, look, cancel, retry, logs, files. `reconcile/runs.py` does the work."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Final, Protocol

import msgspec

from teraflock.base.clock import Clock
from teraflock.base.errors import BadInput, Conflict, NotFound, QuotaReached
from teraflock.base.ids import new_id
from teraflock.base.names import check_name
from teraflock.dataset.service import usable
from teraflock.image import store as images
from teraflock.instance.naming import new_name
from teraflock.instance.orders import check as check_order
from teraflock.run import store
from teraflock.run.bucket import RunBuckets, key_of
from teraflock.run.events import run_event
from teraflock.run.files import RunFiles
from teraflock.run.guest import OUTPUTS, folder_of
from teraflock.run.model import Checkpoint, Run, RunId, RunSpec
from teraflock.run.rules import check_spec, is_over, order_of, retried
from teraflock.run.states import RunPhase, RunWanted
from teraflock.run.sweep import combinations, command_with
from teraflock.storage.database import Database, Transaction
from teraflock.storage.events import record_event
from teraflock.tenant.audit.acting import AuditedService
from teraflock.tenant.model import Actor, Project, ProjectId
from teraflock.tenant.organisation.rules import check_active

ACTIVE_MAX: Final = 200
"""Runs of one project at a time, queued ones included."""
SECRET_CHARACTERS_MAX: Final = 16 << 10
LOG_PIECE_BYTES: Final = 256 << 10
SWEEP_NAME_MAX: Final = 46
"""Of the name of a sweep in those of its runs: they also have a number, and their instances one more."""
OUTPUTS_FILE: Final = "outputs.tar"


class Seals(Protocol):
    def seal(self, text: str, *, bound_to: str) -> str: ...

    def open(self, sealed: str, *, bound_to: str) -> str: ...


class RunLog(msgspec.Struct, frozen=True, kw_only=True):
    text: str
    next: int
    """The offset to ask for next."""
    run: Run


class RunService(AuditedService):
    def __init__(
        self,
        database: Database,
        clock: Clock,
        files: RunFiles,
        vault: Seals,
        *,
        random_bytes: Callable[[int], bytes] = os.urandom,
        wake: Callable[[], None] = lambda: None,
        buckets: RunBuckets | None = None,
    ) -> None:
        super().__init__(database, clock, random_bytes, wake)
        self.files = files
        self._vault = vault
        self._buckets = {} if buckets is None else buckets

    def create(
        self, actor: Actor, project: Project, name: str, spec: RunSpec, secrets: Mapping[str, str]
    ) -> Run:
        (made,) = self._created(actor, project, [(name, spec)], secrets)
        return made

    def create_sweep(
        self,
        actor: Actor,
        project: Project,
        name: str,
        spec: RunSpec,
        secrets: Mapping[str, str],
        grid: Mapping[str, Sequence[str]],
    ) -> tuple[Run, ...]:
        """Create a run for each combination of values, all or none. The budget is that of all of them together."""
        name = name or new_name(self._random_bytes, ())
        wanted = [
            (
                f"{name[:SWEEP_NAME_MAX]}-{number}",
                msgspec.structs.replace(spec, command=command_with(spec.command, each), parameters=each),
            )
            for number, each in enumerate(combinations(grid), start=1)
        ]
        return self._created(actor, project, wanted, secrets, sweep=name)

    def _created(
        self,
        actor: Actor,
        project: Project,
        wanted: Sequence[tuple[str, RunSpec]],
        secrets: Mapping[str, str],
        sweep: str = "",
    ) -> tuple[Run, ...]:
        if any(len(text) > SECRET_CHARACTERS_MAX or "\0" in text for text in secrets.values()):
            raise BadInput(
                "A secret is longer than 16 KB or contains a NUL character", hint="Store it elsewhere"
            )
        now = self._clock.now()
        runs = [self._checked(actor, project, name, spec, tuple(secrets), sweep) for name, spec in wanted]
        first = runs[0].spec

        def work(tx: Transaction) -> tuple[Run, ...]:
            check_active(tx, project.organisation_id)
            _check_image(tx, project.id, first.image)
            usable(tx, project, first.data)
            if store.count_active(tx, project.id) + len(runs) > ACTIVE_MAX:
                raise QuotaReached(
                    f"The project can have at most {ACTIVE_MAX} runs that are not over",
                    hint="Wait for some of them, or cancel them",
                )
            if sweep and store.of_sweep(tx, project.id, sweep):
                raise Conflict(f"The project has a sweep `{sweep}` already", hint="Choose another name")
            for run in runs:
                if store.is_active_name(tx, project.id, run.name):
                    raise Conflict(
                        f"The project has a run `{run.name}` that is not over",
                        hint="Choose another name, or cancel that one",
                    )
                sealed = {
                    each: self._vault.seal(text, bound_to=f"{run.id}/{each}")
                    for each, text in secrets.items()
                }
                store.insert(tx, run, sealed)
                self._note(tx, actor, project, run, "create", now)
            return tuple(runs)

        return self._write(work)

    def _checked(
        self, actor: Actor, project: Project, name: str, spec: RunSpec, secrets: tuple[str, ...], sweep: str
    ) -> Run:
        """A new run, if it can be run."""
        spec = msgspec.structs.replace(spec, secrets=tuple(sorted(secrets)))
        check_spec(spec)
        if name:
            check_name(name, "a run")
        if spec.workdir and not self.files.received_bytes(project.id, spec.workdir)[1]:
            raise Conflict("The files of the run have not been uploaded", hint="Upload them first")
        now = self._clock.now()
        run = Run(
            id=RunId(new_id("run", now, self._random_bytes)),
            project_id=project.id,
            name=name or new_name(self._random_bytes, ()),
            spec=spec,
            created_at=now,
            created_by=actor.member_id,
            sweep=sweep,
            since=now,
            due_at=now,
        )
        check_order(order_of(run, spec.image))
        return run

    def instances_of_sweep(self, run: Run) -> list[str]:
        """All instances of all runs of its sweep."""
        with self._database.read() as tx:
            found = store.of_sweep(tx, run.project_id, run.sweep) if run.sweep else (run,)
        return [id for each in found for id in each.instances]

    def page(self, project: ProjectId, *, before: str, limit: int, active: bool) -> tuple[Run, ...]:
        with self._database.read() as tx:
            return store.page(tx, project, before=before, limit=limit, active=active)

    def run(self, project: ProjectId, ref: str) -> Run:
        with self._database.read() as tx:
            return _found(tx, project, ref)

    def checkpoints(self, project: ProjectId, ref: str) -> tuple[Checkpoint, ...]:
        with self._database.read() as tx:
            return store.checkpoints(tx, _found(tx, project, ref).id)

    def cancel(self, actor: Actor, project: Project, ref: str) -> Run:
        def work(tx: Transaction) -> Run:
            run, now = _found(tx, project.id, ref), self._clock.now()
            if not is_over(run) and run.wanted != RunWanted.CANCELLED:
                store.set_wanted(tx, run.id, RunWanted.CANCELLED, now)
                self._note(tx, actor, project, run, "cancel", now)
            return _found(tx, project.id, run.id)

        return self._write(work)

    def retry(self, actor: Actor, project: Project, ref: str, budget_micros: int | None = None) -> Run:
        """`budget_micros`: a new one, over all attempts. None: the old one."""

        def work(tx: Transaction) -> Run:
            run, now = _found(tx, project.id, ref), self._clock.now()
            if run.phase not in (RunPhase.FAILED, RunPhase.CANCELLED):
                raise Conflict(
                    f"`{run.name}` is {run.phase}: only failed and cancelled runs can be tried again",
                    hint="`tera run` starts a new one",
                )
            check_active(tx, project.organisation_id)
            if not store.put_retried(tx, retried(run, now, budget_micros)):
                raise Conflict(f"`{run.name}` is not over any more", hint="Look again")
            self._note(tx, actor, project, run, "retry", now)
            return _found(tx, project.id, run.id)

        return self._write(work)

    def log(self, project: ProjectId, ref: str, offset: int, node: int = 0) -> RunLog:
        """The log of a node from an offset. A character that is not complete yet comes with the next piece."""
        run = self.run(project, ref)
        if node >= run.spec.nodes:
            raise NotFound(f"`{run.name}` has no node {node}", hint=f"The last node is {run.spec.nodes - 1}")
        content = self.files.log(run.id, offset, LOG_PIECE_BYTES, node)
        if not is_over(run) or len(content) == LOG_PIECE_BYTES:
            content = whole_characters(content)
        return RunLog(text=content.decode("utf-8", "replace"), next=offset + len(content), run=run)

    def outputs(self, project: ProjectId, ref: str) -> Iterator[bytes]:
        run = self.run(project, ref)
        if run.outputs_bytes is None:
            raise NotFound(f"`{run.name}` has no outputs", hint=_where_outputs_are(run))
        return self.files.tar(run.id, OUTPUTS_FILE)

    def checkpoint(self, project: ProjectId, ref: str, name: str) -> Iterator[bytes]:
        for each in self.checkpoints(project, ref):
            if name in (each.name, ""):
                if not each.bucket:
                    return self.files.tar(each.run_id, f"{each.id}.tar")
                if each.bucket in self._buckets:
                    return self._buckets[each.bucket].get_stream(key_of(each))
        raise NotFound(f"There is no checkpoint `{name[:80]}`", hint="`tera run show` lists them")

    def _note(
        self, tx: Transaction, actor: Actor, project: Project, run: Run, act: str, now: datetime
    ) -> None:
        self._audit.record(tx, actor, f"run.{act}", run.id, project, name=run.name)
        record_event(tx, run_event(run, f"run.{act}", now, self._random_bytes))


def _where_outputs_are(run: Run) -> str:
    if run.keeps_instance:
        return f"They are still on its instance: `tera run show {run.name}` has its id, for `tera cp -r`"
    if not is_over(run):
        return "They are copied when it ends"
    return f"A command writes what should be kept to `$TERA_OUTPUTS`, which is `{folder_of(run.spec.outputs, OUTPUTS)}`"


def whole_characters(content: bytes) -> bytes:
    """Without an incomplete UTF-8 character at the end. Bytes that are no UTF-8 stay."""
    for length in range(1, min(4, len(content)) + 1):
        byte = content[-length]
        if 0xC2 <= byte <= 0xF4:  # the first byte of a character
            needed = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return content[:-length] if needed > length else content
        if byte < 0x80:
            break
    return content


def _found(tx: Transaction, project: ProjectId, ref: str) -> Run:
    run = store.find(tx, project, ref)
    if run is None:
        raise NotFound(f"The project has no run `{ref[:80]}`", hint="`tera runs` lists them")
    return run


def _check_image(tx: Transaction, project: ProjectId, ref: str) -> None:
    if images.find(tx, project, ref) is None:
        raise NotFound(f"There is no image `{ref[:80]}`", hint="`tera image list` lists all images")
