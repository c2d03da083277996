"""The files that the system's `ssh` needs: keys to enter with, and the host keys it may trust.

Host keys come in the server's answer, over a connection that is already trusted. Each instance has a file of its own,
named by its id and looked up by its id (`HostKeyAlias`): a port that another instance had before confuses nobody, and
the user's own `known_hosts` is neither read nor written.
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
"""In `~/.ssh`, best first."""
KINDS: Final = ("ssh-ed25519", "ssh-rsa", "ecdsa-sha2-", "sk-ssh-", "sk-ecdsa-")
PUBLIC_KEY_BYTES_MAX: Final = 8192


def public_keys(given: Iterable[str], home: Path, user_home: Path) -> tuple[str, ...]:
    """The lines for `authorized_keys`: those given, else the user's own, else one that is made now.

    None where there is nothing to make one with: an instance can be entered by `tera exec` all the same.
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
    """A file with a public key, or the key itself. A private key is refused before it leaves this machine."""
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
        raise BadInput(
            f"`{given}` holds a private key, which stays with you", hint=f"Give the public one: `{given}.pub`"
        )
    return _checked(text.strip(), f"`{given}`")


def _checked(line: str, what: str) -> str:
    if (
        not line.startswith(KINDS)
        or "\n" in line
        or len(line.split()) < 2
        or len(line) > PUBLIC_KEY_BYTES_MAX
    ):
        raise BadInput(
            f"{what} is no public SSH key", hint="One line such as `ssh-ed25519 AAAAC3… you@there`"
        )
    return line


def own_key(home: Path) -> Path:
    """The key pair that we keep for a user who has none: made at the first need."""
    path = home / "ssh" / "id_ed25519"
    if not own_key_exists(home):
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        for half in (path, path.with_name("id_ed25519.pub")):  # left by one that was cut off
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
            "There is no `ssh-keygen` here to make a key with", hint="As root: apt-get install openssh-client"
        ) from None
    if done.returncode:
        raise Unavailable("`ssh-keygen` could not make a key", context={"stderr": done.stderr})


def identities(home: Path, user_home: Path) -> list[Path]:
    """All keys an instance may have been launched with: naming one, ssh no longer looks for the usual ones itself."""
    usual = [user_home / ".ssh" / name for name in USUAL_KEYS]
    return [path for path in (*usual, home / "ssh" / "id_ed25519") if path.is_file()]


def trust(home: Path, instance_id: str, host_key: str) -> Path:
    """Write down the instance's host key. It is the same as before or the server says otherwise: it is believed."""
    path = known_hosts(home, instance_id)
    put(path, f"{instance_id} {host_key.strip()}\n".encode())
    return path


def forget(home: Path, instance_id: str) -> None:
    known_hosts(home, instance_id).unlink(missing_ok=True)


def known_hosts(home: Path, instance_id: str) -> Path:
    return home / "ssh" / "known_hosts" / instance_id


def options(instance_id: str, trusted: Path, keys: Iterable[Path]) -> list[str]:
    """For `ssh` and `scp` alike: no question is ever asked, and no other host key believed."""
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
    return text.replace("%", "%%")  # ssh puts other words for `%h` and the like
