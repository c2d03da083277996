"""Copies the log, the checkpoints and the outputs of a run from its guest to the server.

A checkpoint is kept only if the guest did not change it while it was read. The row is written after the file, and the
file of a replaced checkpoint is removed after its row: a crash leaves at most a file that no row names.
"""

from functools import partial
from typing import Final

from msgspec.structs import replace

from teraflock.base.errors import NotFound, Refused
from teraflock.base.ids import new_id
from teraflock.base.quantities import bytes_text
from teraflock.reconcile.surroundings import Surroundings
from teraflock.run import store
from teraflock.run.checkpoint import GuestEntry, to_drop, to_pull
from teraflock.run.files import RunFiles
from teraflock.run.guest import CHECKPOINTS, GuestState, RunGuest, folder_of
from teraflock.run.model import Checkpoint, Run
from teraflock.run.service import OUTPUTS_FILE
from teraflock.storage.database import Transaction

PULL_BYTES_MAX: Final = 8 << 30
"""Of one checkpoint, and of all outputs."""
KEPT_BYTES_MAX: Final = 64 << 30
"""Of all outputs and checkpoints of a project."""


class RunPulls:
    def __init__(self, around: Surroundings, files: RunFiles) -> None:
        self._around = around
        self._files = files

    def log(self, run: Run, seen: GuestState) -> Run:
        """Add a piece of the guest's log to that of the run."""
        written = self._files.append_log(run.id, run.log_bytes, seen.log)
        return replace(run, log_bytes=written, log_guest_bytes=run.log_guest_bytes + len(seen.log))

    def checkpoints(self, run: Run, guest: RunGuest) -> None:
        folder = folder_of(run.spec.checkpoints, CHECKPOINTS)
        with self._around.database.read() as tx:
            kept = store.checkpoints(tx, run.id)
        wanted = to_pull(guest.entries(folder), kept, keep=run.spec.keep, bytes_max=PULL_BYTES_MAX)
        for entry in wanted:
            self._check_room(run, entry.size_bytes)
            self._pull(run, guest, folder, entry)

    def outputs(self, run: Run, guest: RunGuest, folder: str) -> int | None:
        """Return the size of the archive. None: there is no such folder."""
        if not guest.entries(folder):
            return None
        self._check_room(run, 0)
        try:
            return self._files.keep(run.id, OUTPUTS_FILE, guest.archive(folder, PULL_BYTES_MAX))[0]
        except NotFound:
            return None

    def _pull(self, run: Run, guest: RunGuest, folder: str, entry: GuestEntry) -> None:
        now = self._around.clock.now()
        id = new_id("ckp", now, self._around.random_bytes)
        try:
            pieces = guest.archive(f"{folder}/{entry.name}", PULL_BYTES_MAX)
            size, digest = self._files.keep(run.id, f"{id}.tar", pieces)
        except (NotFound, Refused):
            return  # removed or replaced while it was read: the next look finds what is there then
        if entry not in guest.entries(folder):
            self._files.remove(run.id, f"{id}.tar")
            return
        pulled = Checkpoint(
            id=id,
            run_id=run.id,
            name=entry.name,
            mark=entry.mark,
            written_ns=entry.written_ns,
            size_bytes=size,
            digest=digest,
            pulled_at=now,
        )
        for old in self._around.database.write(partial(self._keep, run, pulled)):
            self._files.remove(run.id, f"{old.id}.tar")

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
                f"The project stores {bytes_text(held)} of outputs and checkpoints, which is the most it may",
                hint="Outputs and checkpoints are removed 30 days after the end of a run",
            )
