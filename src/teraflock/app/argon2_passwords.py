"""Password hashes: argon2id with the parameters that OWASP recommends for little memory."""

import threading
from typing import Final

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

MEMORY_KIB: Final = 19_456
PASSES: Final = 2
AT_ONCE: Final = 2
"""Each hash takes 19 MiB and some 20 ms of a core: more at once would let sign-ins crowd out everything else."""


class Argon2Passwords:
    def __init__(self) -> None:
        self._hasher = PasswordHasher(time_cost=PASSES, memory_cost=MEMORY_KIB, parallelism=1)
        self._turns = threading.BoundedSemaphore(AT_ONCE)

    def hashed(self, password: str) -> str:
        with self._turns:
            return self._hasher.hash(password)

    def matches(self, hashed: str, password: str) -> bool:
        """Whether the password has this hash. Takes as long for a text that is not a hash."""
        with self._turns:
            try:
                return self._hasher.verify(hashed, password)
            except InvalidHashError:
                self._hasher.hash(password)
                return False
            except VerificationError:
                return False
