"""The files that the system's `ssh` needs: the user's SSH keys, and the host keys to trust.

Host keys come from the server, over a connection that is already trusted. Each instance has its own file, named after
its id, and ssh looks it up by id (`HostKeyAlias`). A port that another instance used before causes no conflict, and the
user's `known_hosts` is neither read nor written.
"""

import os
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from teraflock.app.files import put
from teraflock.base.errors import BadInput, Unavailable

USUAL_KEYS: Final = ("id_ed25519", "id_ecdsa", "id_rsa")
"""Key files in `~/.ssh`, best first."""
KINDS: Final = ("ssh-ed25519", "ssh-rsa", "ecdsa-sha2-", "sk-ssh-", "sk-ecdsa-")
PUBLIC_KEY_BYTES_MAX: Final = 8192


def public_keys(given: Iterable[str], home: Path, user_home: Path) -> tuple[str, ...]:
    """The lines for `authorized_keys`: the given keys, otherwise the user's key, otherwise a generated one.

    Empty if `ssh-keygen` is missing: `tera exec` works without an SSH key.
    """
    keys = tuple(read_public_key(each) for each in given)
    if keys:
        return keys
    for name in USUAL_KEYS:
        path = user_home / ".ssh" / f"{name}.pub"
        if path.is_file() and path.with_suffix("").is_file():
            return (read_public_key(str(path)),)
    if not own_key_exists(home) and shutil.which("ssh-keygen") is None:
        return ()
    return (read_public_key(str(own_key(home)) + ".pub"),)


def read_public_key(given: str) -> str:
    """Read a public key from a file, or take the key itself. A private key never leaves this machine."""
    if given.startswith(KINDS):
        return _checked(given, given.split()[0])
    path = Path(given).expanduser()
    try:
        with path.open("rb") as file:
            text = file.read(PUBLIC_KEY_BYTES_MAX + 1).decode("utf-8", errors="replace")
    except OSError as error:
        raise BadInput(
            f"The key `{given}` cannot be read: {error.strerror}",
            hint="Give the file of a public key, such as `~/.ssh/id_ed25519.pub`, or the key itself",
        ) from None
    if "PRIVATE KEY" in text:
        raise BadInput(f"`{given}` is a private key", hint=f"Give the public key: `{given}.pub`")
    return _checked(text.strip(), f"`{given}`")


def _checked(line: str, what: str) -> str:
    if (
        not line.startswith(KINDS)
        or "\n" in line
        or len(line.split()) < 2
        or len(line) > PUBLIC_KEY_BYTES_MAX
    ):
        raise BadInput(
            f"{what} is not a public SSH key",
            hint="It is one line, such as `ssh-ed25519 AAAAC3… you@example.org`",
        )
    return line


def own_key(home: Path) -> Path:
    """The key pair that Teraflock generates for a user who has none, when it is first needed."""
    path = home / "ssh" / "id_ed25519"
    if not own_key_exists(home):
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        for half in (path, path.with_name("id_ed25519.pub")):  # left by an interrupted run
            half.unlink(missing_ok=True)
        _generate(path)
    return path


def own_key_exists(home: Path) -> bool:
    return all((home / "ssh" / name).is_file() for name in ("id_ed25519", "id_ed25519.pub"))


def _generate(path: Path) -> None:
    words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "teraflock", "-f", str(path)]
    try:
        done = subprocess.run(words, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    except FileNotFoundError:
        raise Unavailable(
            "`ssh-keygen` is not installed", hint="Install it as root: apt-get install openssh-client"
        ) from None
    if done.returncode:
        raise Unavailable(
            "`ssh-keygen` could not generate a key",
            hint="Generate one with `ssh-keygen -t ed25519`, or name one with `--key`",
            context={"stderr": done.stderr},
        )


def identities(home: Path, user_home: Path) -> list[Path]:
    """All keys an instance may have been launched with. With `-i`, ssh does not look for the usual keys itself."""
    usual = [user_home / ".ssh" / name for name in USUAL_KEYS]
    return [path for path in (*usual, home / "ssh" / "id_ed25519") if path.is_file()]


def trust(home: Path, instance_id: str, host_key: str) -> Path:
    """Store the instance's host key as the server reports it, and return the file."""
    path = known_hosts(home, instance_id)
    put(path, f"{instance_id} {host_key.strip()}\n".encode())
    return path


def forget(home: Path, instance_id: str) -> None:
    known_hosts(home, instance_id).unlink(missing_ok=True)


def known_hosts(home: Path, instance_id: str) -> Path:
    return home / "ssh" / "known_hosts" / instance_id


def options(instance_id: str, trusted: Path, keys: Iterable[Path]) -> list[str]:
    """Options for `ssh` and `scp`: never ask a question, trust only this host key."""
    settings = {
        "UserKnownHostsFile": _quoted(trusted),
        "GlobalKnownHostsFile": "/dev/null",
        "HostKeyAlias": instance_id,
        "StrictHostKeyChecking": "yes",
        "CheckHostIP": "no",
        "UpdateHostKeys": "no",
        "PasswordAuthentication": "no",
        "KbdInteractiveAuthentication": "no",
        "LogLevel": "ERROR",
    }
    words = [word for name, value in settings.items() for word in ("-o", f"{name}={value}")]
    return [*words, *(word for key in keys for word in ("-i", _percent(os.fspath(key))))]


def _quoted(path: Path) -> str:
    return f'"{_percent(os.fspath(path))}"'


def _percent(text: str) -> str:
    return text.replace("%", "%%")  # ssh expands `%h` and other tokens
