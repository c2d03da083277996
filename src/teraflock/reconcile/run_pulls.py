"""Copies the log, the checkpoints and the outputs of a run from its guest to the server.

A checkpoint is kept only if the guest did not change it while it was read. The row is written after the file, and the
file of a replaced checkpoint is removed after its row: a crash leaves at most a file that no row names.
"""

import logging
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Final

from msgspec.structs import replace

from teraflock.base.errors import NotFound, Refused, TeraflockError
from teraflock.base.ids import new_id
from teraflock.base.quantities import bytes_text
from teraflock.reconcile.surroundings import Surroundings
from teraflock.run import store
from teraflock.run.bucket import PUSH_BYTES_MAX, RunBuckets, key_of
from teraflock.run.checkpoint import GuestEntry, not_kept, saved_seconds, to_drop, to_pull
from teraflock.run.files import Damaged, RunFiles, checked, is_full
from teraflock.run.guest import CHECKPOINTS, LOG_PIECE_BYTES, GuestState, RunGuest, folder_of
from teraflock.run.model import Checkpoint, Run
from teraflock.run.nodes import nodes_of, with_node
from teraflock.run.service import OUTPUTS_FILE
from teraflock.storage.database import Transaction

LOG: Final = logging.getLogger("teraflock.reconcile")
PULL_BYTES_MAX: Final = 8 << 30
"""Of one checkpoint, and of all outputs."""
KEPT_BYTES_MAX: Final = 64 << 30
"""Of all outputs and checkpoints of a project."""


class RunPulls:
    def __init__(self, around: Surroundings, files: RunFiles, buckets: RunBuckets) -> None:
        self._around = around
        self._files = files
        self._buckets = buckets

    def states(self, run: Run, key: str, guests: Sequence[RunGuest]) -> tuple[Run, list[GuestState], bool]:
        """Look at a program in all guests, and copy the next piece of its log from each. Also return whether there is
        more to keep: output that is written faster than it is copied must not put off anything for long."""
        found, more = [], False
        for number, (guest, node) in enumerate(zip(guests, nodes_of(run), strict=True)):
            seen = guest.state(key, node.log_guest_bytes)
            try:
                written = self._files.append_log(run.id, node.log_bytes, seen.log, number)
            except OSError as error:  # a full disk must not end runs: this piece is copied later
                LOG.warning("%s: its log cannot be written: %s", run.id, error.strerror)
                found.append(replace(seen, log=b""))
                continue
            copied = node.log_guest_bytes + len(seen.log)
            if is_full(written):  # only its end still matters, where a report of the progress may be
                copied = max(copied, seen.log_bytes - LOG_PIECE_BYTES)
            else:
                more = more or seen.has_more(copied)
            run = with_node(run, number, replace(node, log_bytes=written, log_guest_bytes=copied))
            found.append(seen)
        return run, found, more

    def checkpoints(self, run: Run, guest: RunGuest) -> str:
        """Copy what is new. Return why a checkpoint cannot be kept. Empty: all are."""
        folder = folder_of(run.spec.checkpoints, CHECKPOINTS)
        with self._around.database.read() as tx:
            kept = store.checkpoints(tx, run.id)
        seen = guest.entries(folder)
        problem = not_kept(seen, keep=run.spec.keep, bytes_max=PULL_BYTES_MAX)
        for entry in to_pull(seen, kept, keep=run.spec.keep, bytes_max=PULL_BYTES_MAX):
            problem = self._pull(run, guest, folder, entry, saved_seconds(entry, kept)) or problem
        return problem

    def outputs(self, run: Run, guest: RunGuest, folder: str) -> int | None:
        """Return the size of the archive. None: there is no such folder."""
        left_out = guest.special(folder)
        if not left_out and not guest.entries(
            folder
        ):  # a folder with a pipe in it is no entry, but may have files
            return None
        self._check_room(run, 0)
        try:
            pieces = guest.archive(folder, PULL_BYTES_MAX, left_out)
            return self._files.keep(run.id, OUTPUTS_FILE, pieces)[0]
        except NotFound:
            return None

    def _pull(self, run: Run, guest: RunGuest, folder: str, entry: GuestEntry, seconds: float | None) -> str:
        now = self._around.clock.now()
        pulled = Checkpoint(
            id=new_id("ckp", now, self._around.random_bytes),
            run_id=run.id,
            name=entry.name,
            mark=entry.mark,
            written_ns=entry.written_ns,
            size_bytes=0,
            digest="",
            pulled_at=now,
            saved_seconds=seconds,
        )
        path = f"{folder}/{entry.name}"
        try:
            self._check_room(run, entry.size_bytes)
            pulled = self._pushed(run, guest, path, pulled) or self._copied(guest, path, pulled)
        except NotFound:
            return ""  # removed while it was read: the next look finds what is there then
        except Refused as error:  # a limit, or a file that cannot be read, unless it was replaced meanwhile
            return f"`{entry.name}`: {error.sentence}" if entry in guest.entries(folder) else ""
        if entry not in guest.entries(folder):
            self.drop(pulled)
            return ""
        for old in self._around.database.write(partial(self._keep, run, pulled)):
            self.drop(old)
        return ""

    def _copied(self, guest: RunGuest, path: str, pulled: Checkpoint) -> Checkpoint:
        """Copy a checkpoint to the server."""
        pieces = guest.archive(path, PULL_BYTES_MAX)
        size, digest = self._files.keep(pulled.run_id, f"{pulled.id}.tar", pieces)
        return replace(pulled, size_bytes=size, digest=digest)

    def _pushed(self, run: Run, guest: RunGuest, path: str, pulled: Checkpoint) -> Checkpoint | None:
        """Let the guest push a checkpoint to the bucket of its region. None: it is copied to the server instead."""
        bucket = self._buckets.get(guest.near)
        if bucket is None:
            return None
        try:
            packed = guest.pack(run.key, path)
            self._check_room(run, packed.size_bytes)
            if packed.size_bytes > PUSH_BYTES_MAX:
                return None
            pushed = replace(pulled, bucket=guest.near, size_bytes=packed.size_bytes, digest=packed.digest)
            guest.push(run.key, bucket.put_url(key_of(pushed), packed.size_bytes))
            if bucket.sizes(key_of(pushed)).get(key_of(pushed)) != packed.size_bytes:
                return None
        except TeraflockError as error:
            LOG.warning("%s: a checkpoint is copied to the server instead: %s", run.id, error.sentence)
            return None
        return pushed

    def drop(self, checkpoint: Checkpoint) -> None:
        """Remove the content of a checkpoint."""
        if not checkpoint.bucket:
            self._files.remove(checkpoint.run_id, f"{checkpoint.id}.tar")
        elif checkpoint.bucket in self._buckets:
            try:
                self._buckets[checkpoint.bucket].remove(key_of(checkpoint))
            except TeraflockError as error:  # it is removed with the run
                LOG.warning("%s cannot be removed now: %s", checkpoint.id, error.sentence)

    def restore(self, run: Run, guest: RunGuest, checkpoint: Checkpoint, folder: str) -> None:
        """Bring a checkpoint to a guest: from the bucket of its own region, or through the server."""
        if not checkpoint.bucket:
            pieces = self._files.intact(run.id, f"{checkpoint.id}.tar", checkpoint.digest)
            self._send(run, guest, pieces, folder)
            return
        bucket, key = self._buckets.get(checkpoint.bucket), key_of(checkpoint)
        if bucket is None or bucket.sizes(key).get(key) != checkpoint.size_bytes:
            return
        if guest.near == checkpoint.bucket:
            guest.fetch(run.key, bucket.get_url(key), checkpoint.digest, folder, replace=False)
        else:
            self._send(run, guest, checked(bucket.get_stream(key), checkpoint.digest), folder)

    def note_restored(self, run: Run, guest: RunGuest) -> None:
        """Note the marks of restored checkpoints before the command starts, so that they are not copied back."""
        with self._around.database.read() as tx:
            kept = store.checkpoints(tx, run.id)
        entries = guest.entries(folder_of(run.spec.checkpoints, CHECKPOINTS)) if kept else ()
        marks = {each.name: each.mark for each in entries}
        restored = [replace(each, mark=marks[each.name]) for each in kept if each.name in marks]

        def note(tx: Transaction) -> None:
            for each in restored:
                store.put_checkpoint(tx, each)

        if restored:
            self._around.database.write(note)

    def _send(self, run: Run, guest: RunGuest, pieces: Iterable[bytes], folder: str) -> None:
        """Send a checkpoint. One that is damaged, or not in the backup that was restored, is left out: it is noticed
        before anything is extracted, and an older one may do."""
        try:
            guest.put(run.key, pieces, folder, replace=False)
        except Damaged:
            LOG.warning("%s: a checkpoint is damaged or missing", run.id)

    def _keep(self, run: Run, pulled: Checkpoint, tx: Transaction) -> list[Checkpoint]:
        """Write the row. Return the checkpoints that it replaces or that are too old."""
        before = store.checkpoints(tx, run.id)
        store.put_checkpoint(tx, pulled)
        old = to_drop(store.checkpoints(tx, run.id), keep=run.spec.keep)
        for each in old:
            store.remove_checkpoint(tx, each.id)
        return [*(each for each in before if each.name == pulled.name), *old]

    def _check_room(self, run: Run, more_bytes: int) -> None:
        with self._around.database.read() as tx:
            held = store.kept_bytes(tx, run.project_id)
        if held + more_bytes > KEPT_BYTES_MAX:
            raise Refused(
                f"The project stores {bytes_text(held)} of outputs and checkpoints, which is the limit",
                hint="Outputs and checkpoints are removed 30 days after the end of a run",
            )
