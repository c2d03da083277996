"""Reads public SSH keys, and decides which keys a new instance gets."""

import base64
import binascii
import hashlib
from collections.abc import Iterable
from typing import Final

from teraflock.base.errors import BadInput, Forbidden
from teraflock.tenant.model import Actor

KEYS_MAX: Final = 20
"""Of one member."""
KEY_CHARACTERS_MAX: Final = 8192
TYPES: Final = (
    "ssh-ed25519", "ssh-rsa", "ecdsa-sha2-nistp256", "ecdsa-sha2-nistp384", "ecdsa-sha2-nistp521",
    "sk-ssh-ed25519@openssh.com", "sk-ecdsa-sha2-nistp256@openssh.com",
)  # fmt: skip
_PREFIX_BYTES: Final = 4


def parse_public_key(text: str) -> tuple[str, str, str]:
    """The key without its comment, its fingerprint, and the comment. Options such as `command=` are refused."""
    words = text.strip().split(maxsplit=2)
    is_line = len(text) <= KEY_CHARACTERS_MAX and len(words) >= 2 and text.strip().isprintable()
    if not is_line or words[0] not in TYPES:
        raise _wrong("It must be one line that starts with its type, such as `ssh-ed25519`")
    try:
        blob = base64.b64decode(words[1], validate=True)
    except (binascii.Error, ValueError):
        raise _wrong("Its second word is damaged: copy the whole line again") from None
    length = int.from_bytes(blob[:_PREFIX_BYTES], "big")
    if blob[_PREFIX_BYTES : _PREFIX_BYTES + length] != words[0].encode() or len(blob) < 2 * len(words[0]):
        raise _wrong("Its two parts do not belong together: copy the whole line again")
    digest = base64.b64encode(hashlib.sha256(blob).digest()).rstrip(b"=").decode()
    return f"{words[0]} {words[1]}", f"SHA256:{digest}", words[2] if len(words) > 2 else ""


def keys_of_launch(given: Iterable[str], own: Iterable[str]) -> tuple[str, ...]:
    """The keys of a new instance: those of the request, then those of the member, each once."""
    found: dict[str, str] = {}
    for key in (*given, *own):
        found.setdefault(" ".join(key.split()[:2]), key)
    return tuple(found.values())


def check_unlimited_for_ssh(actor: Actor) -> None:
    """A key of a member opens instances in all projects, so a limited API key must not add or remove one."""
    if actor.project_id or actor.role_max or actor.expires_at:
        raise Forbidden(
            "This API key has limits, so it cannot change the SSH keys of members",
            hint="Sign in with your password, or use a key without limits",
        )


def _wrong(hint: str) -> BadInput:
    return BadInput("This is not a public SSH key", hint=hint)
