"""Datasets on this host: each is a custom volume of the engine, which guests mount read-only.

The volume is not mapped to a guest's user ids: its files belong to nobody there and everyone can read them. So guests
with different ids share one copy. A volume without the mark of a complete copy is made again.
"""

import contextlib
import shutil
import tarfile
from collections.abc import Sequence
from hashlib import file_digest
from pathlib import Path
from typing import Final

from teraflock.dataset.model import FOLDER, DatasetCopy, DatasetMount
from teraflock.drivers.lxd import names
from teraflock.drivers.lxd.custom_volumes import CustomVolumes
from teraflock.drivers.lxd.interfaces import ID
from teraflock.drivers.lxd.names import Names
from teraflock.instance.engine_errors import EngineRefused, NoRoom

KIND: Final = "dataset"
COMPLETE: Final = "user.teraflock.complete"
FREE_BYTES_MIN: Final = 4 << 30
"""The disk on which datasets arrive keeps this much free: the system of the host is on it."""


class LxdDatasets:
    def __init__(self, volumes: CustomVolumes, spool: Path) -> None:
        """`spool` is the folder in which a dataset arrives."""
        self._volumes = volumes
        self._spool = spool

    def copies(self, host: str) -> Sequence[DatasetCopy]:
        found = [each["config"] for each in self._volumes.all(KIND)]
        return [DatasetCopy(dataset_id=each[ID], host=host) for each in found if each.get(COMPLETE)]

    def receive(self, id: str, offset: int, piece: bytes) -> None:
        self._spool.mkdir(parents=True, exist_ok=True, mode=0o700)
        path = self._tar(id)
        if (path.stat().st_size if path.exists() else 0) < offset:
            raise EngineRefused("The host has less of the dataset than expected")
        if shutil.disk_usage(self._spool).free - len(piece) < FREE_BYTES_MIN:
            path.unlink(missing_ok=True)
            raise NoRoom("The host has no room for the dataset", hint="Use another host")
        with path.open("ab") as file:
            file.truncate(offset)
            file.write(piece)

    def unpack(self, id: str, digest: str) -> None:
        found = self._volumes.get(id)
        if found is not None and found["config"].get(COMPLETE):
            self._tar(id).unlink(missing_ok=True)
            return
        self._check(id, digest)
        if found is not None:  # a crash left a part of it
            self._volumes.delete(id)
        self._volumes.create(KIND, id, {"security.unmapped": "true"})
        try:
            _extract(self._tar(id), self._volumes.folder(id))
        except OSError as error:
            self._volumes.delete(id)
            self._tar(id).unlink(missing_ok=True)
            raise NoRoom("The host has no room for the dataset", hint="Use another host") from error
        self._volumes.change(id, {COMPLETE: "true"})
        self._tar(id).unlink(missing_ok=True)

    def delete(self, id: str) -> None:
        self._volumes.delete(id)
        self._tar(id).unlink(missing_ok=True)

    def leave(self) -> None:
        """Remove what arrived."""
        shutil.rmtree(self._spool, ignore_errors=True)
        with contextlib.suppress(OSError):
            self._spool.parent.rmdir()

    def _check(self, id: str, digest: str) -> None:
        path = self._tar(id)
        if path.exists():
            with path.open("rb") as file:
                if file_digest(file, "sha256").hexdigest() == digest:
                    return
            path.unlink(missing_ok=True)
        raise EngineRefused("The host received a different dataset from the announced one")

    def _tar(self, id: str) -> Path:
        return self._spool / f"{names.guest(id)}.tar"


def devices(data: Sequence[DatasetMount], ours: Names) -> dict[str, dict[str, str]]:
    """The devices with which a guest reads datasets."""
    return {
        f"data{number}": {
            "type": "disk",
            "pool": ours.pool,
            "source": names.guest(each.id),
            "path": f"{FOLDER}/{each.name}",
            "readonly": "true",
        }
        for number, each in enumerate(data)
    }


def _extract(tar: Path, folder: Path) -> None:
    """The server made the tar from a checked manifest. The filter refuses everything else."""
    with tarfile.open(tar) as archive:
        archive.extractall(folder, filter="data")
    folder.chmod(0o755)
    for each in folder.rglob("*"):
        if each.is_dir():
            each.chmod(0o755)
