"""The installation's key: encrypts credentials, and derives keys for rented machines.

The key is a file of 32 random bytes next to the settings, readable only by its owner. It is not in the database, so a
copy of the database alone reveals no credentials. Backups include it. All servers of an installation need the same key.
"""

import base64
import hmac
import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from teraflock.base.errors import Refused, StorageFailed

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

KEY_FILE: Final = "secrets.key"
KEY_BYTES: Final = 32
NONCE_BYTES: Final = 12
VERSION: Final = "1:"


class FileVault:
    """Reads the key when it is first needed, and creates it then if it does not exist."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / KEY_FILE

    def seal(self, text: str, *, bound_to: str) -> str:
        """Encrypt a text. A copy of it under another name cannot be decrypted."""
        nonce = os.urandom(NONCE_BYTES)
        sealed = _cipher(self._derived("seal")).encrypt(nonce, text.encode(), bound_to.encode())
        return VERSION + base64.b64encode(nonce + sealed).decode()

    def open(self, sealed: str, *, bound_to: str) -> str:
        from cryptography.exceptions import InvalidTag

        try:
            content = base64.b64decode(sealed.removeprefix(VERSION), validate=True)
            nonce, rest = content[:NONCE_BYTES], content[NONCE_BYTES:]
            return _cipher(self._derived("seal")).decrypt(nonce, rest, bound_to.encode()).decode()
        except (InvalidTag, ValueError):
            raise Refused(
                f"The stored credentials of `{bound_to}` cannot be decrypted",
                hint=f"They were encrypted with another `{KEY_FILE}`. Restore that file, or run `tera account key`",
            ) from None

    def derive(self, purpose: str) -> bytes:
        """32 bytes for a purpose: always the same for this installation, and unrelated to those of other purposes."""
        return self._derived(f"derive {purpose}")

    def _derived(self, purpose: str) -> bytes:
        return hmac.digest(self._key(), purpose.encode(), "sha256")

    def _key(self) -> bytes:
        try:
            key = self._path.read_bytes()
        except FileNotFoundError:
            key = self._created()
        except OSError as error:
            raise StorageFailed(f"Could not read `{self._path}`: {error.strerror}") from None
        if len(key) != KEY_BYTES:
            raise StorageFailed(
                f"`{self._path}` is damaged: it has {len(key)} bytes instead of {KEY_BYTES}",
                hint="Restore it from a backup",
            )
        return key

    def _created(self) -> bytes:
        """Create the key. If two processes try at once, both use the one that was first."""
        beside = self._path.with_suffix(f".{os.getpid()}.new")
        beside.unlink(missing_ok=True)
        with open(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:  # noqa: PTH123
            file.write(os.urandom(KEY_BYTES))
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(beside, self._path)
        except FileExistsError:
            pass
        finally:
            beside.unlink()
        return self._path.read_bytes()


def _cipher(key: bytes) -> "ChaCha20Poly1305":
    from cryptography.hazmat.primitives.ciphers.aead import (
        ChaCha20Poly1305,
    )  # only servers with accounts load it

    return ChaCha20Poly1305(key)
