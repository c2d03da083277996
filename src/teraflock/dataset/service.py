"""The dataset service for the edges. `reconcile/datasets.py` copies datasets to hosts and removes them."""

import os
from collections.abc import Callable
from datetime import datetime
from typing import Final

from msgspec.structs import replace

from teraflock.base.clock import Clock
from teraflock.base.errors import BadInput, Conflict, TeraflockError, Unavailable, not_found
from teraflock.base.ids import new_id
from teraflock.base.names import check_name
from teraflock.base.quantities import GIB, count_text
from teraflock.dataset import events, store
from teraflock.dataset.files import DatasetFiles
from teraflock.dataset.model import PREFIX, Dataset, DatasetId, DatasetMount, DatasetState, ManifestChunk
from teraflock.dataset.rules import MANIFEST_BYTES_MAX, manifest_from
from teraflock.storage.database import Database, Transaction
from teraflock.tenant.audit.acting import AuditedService
from teraflock.tenant.model import Actor, Project, ProjectId
from teraflock.tenant.organisation.rules import check_active
from teraflock.tenant.project.claim import claimed
from teraflock.tenant.quota import rules as quotas
from teraflock.tenant.quota.rules import QuotaAmounts
from teraflock.tenant.quota.store import name_and_quota

BYTES_MAX_DEFAULT: Final = 64 * GIB
"""Of all datasets of a project, if neither its quota nor that of its organisation limits them."""
PER_PROJECT_MAX: Final = 1000
FILES_PER_PROJECT_MAX: Final = 4_000_000
"""Empty files need no quota of data, but room on the server and on every host."""

Uploaded = Callable[[str, str, int], bytes]
"""Reads a file that a project uploaded, by its SHA-256, up to a size."""


class DatasetService(AuditedService):
    def __init__(
        self,
        database: Database,
        clock: Clock,
        files: DatasetFiles,
        uploaded: Uploaded,
        *,
        random_bytes: Callable[[int], bytes] = os.urandom,
        wake: Callable[[], None] = lambda: None,
        admits: Callable[[Transaction, ProjectId], None] = lambda tx, project_id: None,
    ) -> None:
        """`admits` raises if budget or balance of a project do not allow more."""
        super().__init__(database, clock, random_bytes, wake)
        self._files = files
        self._uploaded = uploaded
        self._admits = admits

    def all(self, project: Project) -> tuple[Dataset, ...]:
        with self._database.read() as tx:
            return store.of_project(tx, project.id)

    def dataset(self, project: Project, ref: str) -> Dataset:
        with self._database.read() as tx:
            return found(tx, project, ref, store.find(tx, project.id, ref))

    def create(self, actor: Actor, project: Project, name: str, digest: str) -> Dataset:
        """Announce a dataset by its manifest, which was uploaded before. The same name and content: continue."""
        check_name(name, "a dataset")
        with self._database.read() as tx:
            known = _same(tx, project, name, digest)
        if known is not None:
            return known
        content = self._uploaded(project.id, digest, MANIFEST_BYTES_MAX)
        manifest = manifest_from(content)
        now = self._clock.now()
        made = Dataset(
            id=DatasetId(new_id(PREFIX, now, self._random_bytes)),
            project_id=project.id,
            name=name,
            state=DatasetState.UPLOADING,
            digest=digest,
            size_bytes=manifest.size_bytes,
            files=len(manifest.files),
            chunks=len({each.digest for each in manifest.chunks}),
            created_at=now,
            created_by=actor.member_id,
            used_at=now,
        )
        self._files.keep_manifest(
            made.id, content
        )  # before the row: a crash leaves a folder, which is removed

        def work(tx: Transaction) -> Dataset:
            fresh = claimed(tx, project)
            check_active(tx, project.organisation_id)
            if (known := _same(tx, project, name, digest)) is not None:
                return known
            _check_quota(tx, fresh, made)
            store.insert(tx, made)
            self._audit.record(tx, actor, "dataset.create", made.id, project, name=name)
            self._admits(tx, project.id)
            return made

        try:
            announced = self._database.write_with_locks(work)
        except Unavailable:  # the row may have been written
            raise
        except TeraflockError:
            self._files.remove(made.id)
            raise
        if announced.id != made.id:  # another push of the same content was faster
            self._files.remove(made.id)
        return announced

    def missing(self, project: Project, ref: str, *, limit: int) -> tuple[list[ManifestChunk], int]:
        """The first chunks that the server lacks, and how many it lacks."""
        dataset = self.dataset(project, ref)
        lacks = [] if dataset.state != DatasetState.UPLOADING else self._files.missing(dataset.id)
        return lacks[:limit], len(lacks)

    def receive(
        self, project: Project, ref: str, digest: str, offset: int, content: bytes
    ) -> tuple[int, bool]:
        """Add a piece of a chunk. Only chunks of the manifest are accepted."""
        dataset = self.dataset(project, ref)
        if dataset.state == DatasetState.DELETING:
            raise Conflict(f"The dataset `{dataset.name}` is being deleted", hint="Try again in a moment")
        chunk = next(
            (each for each in self._files.manifest(dataset.id).chunks if each.digest == digest), None
        )
        if chunk is None:
            raise BadInput("The dataset has no such chunk", hint="Push it again with `tera data push`")
        if dataset.state == DatasetState.READY:  # another push of the same content was faster
            return chunk.size_bytes, True
        received, complete = self._files.receive(dataset.id, chunk, offset, content)
        if complete:
            now = self._clock.now()
            self._database.write(lambda tx: store.set_used(tx, dataset.id, now))
        return received, complete

    def complete(self, actor: Actor, project: Project, ref: str) -> Dataset:
        """Make a dataset usable, once all its chunks have arrived. It is charged from now on."""
        dataset = self.dataset(project, ref)
        if dataset.state == DatasetState.UPLOADING and (lacks := self._files.missing(dataset.id)):
            raise Conflict(
                f"{count_text(len(lacks), 'chunk')} of `{dataset.name}` did not arrive",
                hint="Run `tera data push` again. It continues where it stopped",
            )

        def work(tx: Transaction) -> Dataset:
            now = self._clock.now()
            fresh = found(tx, project, ref, store.find_to_change(tx, project.id, dataset.id))
            if store.move(tx, fresh.id, DatasetState.READY, now, ready_at=now):
                events.record_ready(tx, fresh, now, self._random_bytes)
                self._audit.record(tx, actor, "dataset.complete", fresh.id, project, name=fresh.name)
            return found(tx, project, ref, store.find(tx, project.id, fresh.id))

        return self._database.write_with_locks(work)

    def delete(self, actor: Actor, project: Project, ref: str) -> Dataset:
        def work(tx: Transaction) -> Dataset:
            dataset = found(tx, project, ref, store.find_to_change(tx, project.id, ref))
            if users := store.users(tx, dataset.id):
                raise Conflict(
                    f"The dataset `{dataset.name}` is in use by {count_text(users, 'instance')}",
                    hint="Delete them first. `tera ps` lists them",
                )
            now = self._clock.now()
            end(tx, dataset, now, self._random_bytes)
            self._audit.record(tx, actor, "dataset.delete", dataset.id, project, name=dataset.name)
            return found(tx, project, ref, store.find(tx, project.id, dataset.id))

        return self._write_with_locks(work)


def end(tx: Transaction, dataset: Dataset, now: datetime, random_bytes: Callable[[int], bytes]) -> None:
    """Mark a dataset for deletion. The loop removes its files and copies."""
    is_deleted = store.move(tx, dataset.id, DatasetState.DELETING, now, ready_at=dataset.ready_at)
    if is_deleted and dataset.state == DatasetState.READY:
        events.record_deleted(tx, dataset, now, random_bytes)


def mounts(tx: Transaction, project: Project, names: tuple[str, ...]) -> tuple[DatasetMount, ...]:
    """The datasets that an instance names. Nobody can delete them until the transaction ends. Others can use them at
    the same time, so nothing is written to their rows."""
    made: dict[str, DatasetMount] = {}
    for name in names:
        dataset = _usable(tx, project, name, store.find_to_use(tx, project.id, name))
        made[dataset.id] = DatasetMount(dataset.id, dataset.name)
    return tuple(made.values())


def usable(tx: Transaction, project: Project, names: tuple[str, ...]) -> list[Dataset]:
    """The datasets with these names, or an error if one of them cannot be read."""
    return [_usable(tx, project, name, store.find(tx, project.id, name)) for name in names]


def _usable(tx: Transaction, project: Project, name: str, known: Dataset | None) -> Dataset:
    dataset = found(tx, project, name, known)
    if dataset.state != DatasetState.READY:
        raise Conflict(
            f"The dataset `{dataset.name}` is {dataset.state}", hint="`tera data list` shows its state"
        )
    return dataset


def found(tx: Transaction, project: Project, ref: str, dataset: Dataset | None) -> Dataset:
    if dataset is None:
        known = [each.name for each in store.of_project(tx, project.id)]
        raise not_found("dataset", ref, known, see="`tera data list` lists them")
    return dataset


def _same(tx: Transaction, project: Project, name: str, digest: str) -> Dataset | None:
    """The dataset with this name and this content. Raise if only one of them is the same."""
    named, alike = store.find(tx, project.id, name), store.with_digest(tx, project.id, digest)
    for each in (named, alike):
        if each is not None and each.state == DatasetState.DELETING:
            raise Conflict(f"The dataset `{each.name}` is being deleted", hint="Try again in a moment")
    if named is not None and named.digest != digest:
        raise Conflict(
            f"The project has other data with the name `{name}`",
            hint="Choose another name, or delete that dataset first",
        )
    if alike is not None and alike.name != name:
        raise Conflict(f"The project has this data already, as `{alike.name}`", hint="Use that name")
    return named


def _check_quota(tx: Transaction, project: Project, made: Dataset) -> None:
    known = store.of_project(tx, project.id)
    if len(known) >= PER_PROJECT_MAX:
        raise Conflict(f"A project can have at most {PER_PROJECT_MAX} datasets", hint="Delete one first")
    if sum(each.files for each in known) + made.files > FILES_PER_PROJECT_MAX:
        raise Conflict(
            f"The datasets of a project can have {FILES_PER_PROJECT_MAX:,} files",
            hint="Pack small files together, or delete a dataset",
        )
    more, hint = QuotaAmounts(data_bytes=made.size_bytes), "Delete data, or ask for more: `tera quota show`"
    name, outer = name_and_quota(tx, project.organisation_id)
    inner = project.quota
    if inner.data_bytes is None and outer.data_bytes is None:
        inner = replace(inner, data_bytes=BYTES_MAX_DEFAULT)
    used = QuotaAmounts(data_bytes=store.kept_bytes(tx, project.id))
    quotas.check(inner, used, more, of=f"project `{project.name}`", hint=hint)
    whole = QuotaAmounts(data_bytes=store.kept_bytes_of_organisation(tx, project.organisation_id))
    quotas.check(outer, whole, more, of=f"organisation `{name}`", hint=hint)
