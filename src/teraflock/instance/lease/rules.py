"""Divides work that has no lease among the living workers. Pure."""

from collections.abc import Sequence
from hashlib import sha256


def worker_for(key: str, alive: Sequence[str]) -> str:
    """The worker that does this work. All workers find the same one, as long as they see the same ones alive."""
    return max(alive, key=lambda worker: sha256(f"{worker}/{key}".encode()).digest(), default="")
