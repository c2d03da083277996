"""One at a time: two `make up` at once must not start two servers."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager

from teraflock.app.installation.places import Places
from teraflock.base.errors import Conflict


@contextmanager
def alone(places: Places) -> Iterator[None]:
    """Held until the block ends, or the process does, however it ends."""
    places.home.mkdir(parents=True, exist_ok=True)
    with places.lock.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Conflict(
                "Another `up`, `down`, `purge` or `backup` of this installation is at work",
                hint="Wait for it, then try again",
            ) from None
        yield
