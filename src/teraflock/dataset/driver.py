"""What an engine must do for datasets. All calls may be repeated."""

from collections.abc import Sequence
from typing import Protocol

from teraflock.dataset.model import DatasetCopy


class DatasetDriver(Protocol):
    """With the capability DATASETS. A dataset is on a host once, however many guests read it."""

    def datasets(self) -> Sequence[DatasetCopy]:
        """The complete copies on all hosts. A host that does not answer is left out."""
        ...

    def receive_dataset(self, host: str, dataset_id: str, offset: int, piece: bytes) -> None:
        """Add a piece to the tar of a dataset, of which the host has `offset` bytes. Offset 0 starts again."""
        ...

    def unpack_dataset(self, host: str, dataset_id: str, digest: str, size_bytes: int) -> None:
        """Make the copy from the tar that was received, if its SHA-256 is `digest`. `size_bytes` is that of all files.

        Afterwards `datasets` lists the copy. Raise `EngineRefused` if the tar is not the announced one.
        """
        ...

    def delete_dataset(self, host: str, dataset_id: str) -> None:
        """Remove a copy, or what was received of it. Raise `EngineBusy` while a guest uses it."""
        ...
