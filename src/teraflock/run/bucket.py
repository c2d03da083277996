"""What a bucket for runs in a region must do. Rented machines near it push checkpoints there and read datasets from it.

A guest gets no credentials, only an address that is valid for one object, one act and a few minutes.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, Protocol

from teraflock.run.model import Checkpoint

URL_SECONDS: Final = 900
PUSH_BYTES_MAX: Final = 5_000_000_000
"""What S3 accepts in one request."""
DATA: Final = "data/"


class RunBucket(Protocol):
    def put_url(self, key: str, size_bytes: int) -> str:
        """An address for a PUT of exactly this size."""
        ...

    def get_url(self, key: str) -> str: ...

    def put_stream(self, key: str, pieces: Iterable[bytes]) -> None: ...

    def get_stream(self, key: str) -> Iterator[bytes]: ...

    def sizes(self, prefix: str) -> Mapping[str, int]:
        """All objects below a prefix."""
        ...

    def remove(self, prefix: str) -> None: ...


RunBuckets = Mapping[str, RunBucket]
"""By region."""


def key_of(checkpoint: Checkpoint) -> str:
    return f"{checkpoint.run_id}/{checkpoint.id}.tar"


def data_key(dataset_id: str) -> str:
    return f"{DATA}{dataset_id}.tar"


def digest_key(dataset_id: str) -> str:
    """Written after the dataset: it has the digest, and shows that the dataset is complete."""
    return f"{DATA}{dataset_id}.tar.sha256"
