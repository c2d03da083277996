"""A lock for the installation: two `make up` at the same time must not start two servers."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager

from teraflock.app.installation.places import Places
from teraflock.base.errors import Conflict


@contextmanager
def alone(places: Places) -> Iterator[None]:
    """Hold the lock until the block or the process ends."""
    places.home.mkdir(parents=True, exist_ok=True)
    with places.lock.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Conflict(
                "Another `up`, `down`, `purge` or `backup` of this installation is running",
                hint="Wait until it is done, then try again",
            ) from None
        yield
