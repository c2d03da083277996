"""The server's settings: a frozen value, read once from `<home>/cloud/settings.toml` and `TERA_*`.

What holds:
- the environment wins over the file, the file over the defaults;
- a name nobody knows in the file is refused: a setting that does nothing is worse than an error;
- every setting has a sentence under it, of which docs/settings.md is made (app/reference.py).
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta

from teraflock.app.home import home as default_home
from teraflock.base.errors import BadInput, unknown_name

FOLDER: Final = "cloud"
FILE: Final = "settings.toml"
DATABASE_FILE: Final = "cloud.db"
PID_FILE: Final = "server.pid"
LOG_FILE: Final = "server.log"
OPERATOR_KEY_FILE: Final = "operator.key"

Positive = Annotated[int, Meta(ge=1)]


class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    listen: str = "127.0.0.1:8372"
    """Address and port the server answers on. Beyond this machine only with TLS, or `insecure`."""
    insecure: bool = False
    """Answer beyond this machine without TLS: keys then cross the network in the clear."""
    tls_cert: str = ""
    """File with the certificate chain in PEM form. With `tls_key` the server speaks HTTPS only."""
    tls_key: str = ""
    """File with the private key of `tls_cert`."""
    database: str = ""
    """`postgresql://user@host/name`, or the path of an SQLite file. Empty: `cloud/cloud.db` in the home folder."""
    engine: Literal["lxd", "simulated"] = "lxd"
    """What runs instances: LXD or Incus on this machine, or nothing real."""
    lxd_socket: str = ""
    """Unix socket of LXD or Incus. Empty: where they usually lie."""
    pool_gb: Annotated[int, Meta(ge=4, le=1 << 20)] = 64
    """Size of the file in which guests' disks lie; it takes room as they are filled. Counts when the pool is made."""
    pool_source: str = ""
    """A disk, partition or btrfs folder for guests' disks instead of a file. Counts when the pool is made."""
    guests_reach_out: bool = True
    """Whether guests reach the world outside through their host (NAT)."""
    vcpu_overcommit: Annotated[float, Meta(ge=1, le=64)] = 16.0
    """How many virtual processors are promised for each real one."""
    disk_overcommit: Annotated[float, Meta(ge=1, le=64)] = 4.0
    """How many times over a host's disk is promised: guests' disks are thin."""
    simulated_hosts: str = "4x8xV100,2x0"
    """The fleet of the simulated engine: hosts × cards × model, in groups; `2x0` are two hosts without cards."""
    simulated_boot_seconds: Annotated[float, Meta(ge=0, le=3600)] = 0.5
    """How long a simulated guest takes to answer."""
    simulated_faults: str = ""
    """What goes wrong on a new simulated engine, for tests and rehearsals, such as `create:half:killed`."""
    faults: str = ""
    """Where the server ends itself as by `kill -9`, for tests of what comes after, such as `launch.create:after`."""
    loops: bool = True
    """Whether this process also does the work on instances. Off: it only answers, and another process works."""
    rate_per_second: Annotated[int, Meta(ge=0)] = 200
    """Requests a second that one key, or one address without a key, may make in the long run. 0: no limit."""
    rate_burst: Positive = 1000
    """Requests that may come at once before `rate_per_second` counts."""
    body_bytes_max: Annotated[int, Meta(ge=65_536, le=64 << 20)] = 1_000_000
    """The largest body of a request."""
    streams_max: Annotated[int, Meta(ge=1, le=10_000)] = 200
    """How many clients may follow events at a time."""
    threads: Annotated[int, Meta(ge=1, le=256)] = 16
    """Threads that answer requests which write, or which ask PostgreSQL."""
    execs_max: Annotated[int, Meta(ge=1, le=1000)] = 32
    """How many commands may be run inside instances over the API at a time."""
    metrics_open: bool = False
    """Whether `/metrics` is answered without an operator's key."""
    traffic_seconds: Annotated[float, Meta(ge=1, le=3600)] = 60.0
    """How often the counters of what guests send out of the house are read: bill and budgets know of it so soon."""
    issuer: str = "Teraflock"
    """Who sends invoices: a name, and the lines of an address."""
    issuer_tax_number: str = ""
    """The seller's tax number, printed on invoices."""
    invoice_days: Annotated[int, Meta(ge=0, le=365)] = 14
    """Days until an invoice is due; 0: invoices name no date."""
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    """How much the server writes to its log."""


class Place(msgspec.Struct, frozen=True):
    """Where the server's files lie."""

    home: Path

    @property
    def folder(self) -> Path:
        return self.home / FOLDER

    @property
    def settings(self) -> Path:
        return self.folder / FILE

    @property
    def pid(self) -> Path:
        return self.folder / PID_FILE

    @property
    def operator_key(self) -> Path:
        return self.folder / OPERATOR_KEY_FILE

    def database(self, settings: Settings) -> str:
        return settings.database or str(self.folder / DATABASE_FILE)


def place() -> Place:
    return Place(Path(default_home()))


def load_settings(at: Place, environ: Mapping[str, str] = os.environ) -> Settings:
    """The settings of the server whose home this is. `BadInput` where one cannot be taken."""
    given = {**_of_file(at.settings), **_of_environment(environ)}
    settings = msgspec.structs.replace(Settings(), **given)
    _check(settings)
    return settings


def variable(name: str) -> str:
    """What a setting is called in the environment."""
    return f"TERA_{name.upper()}"


def address_of(listen: str) -> tuple[str, int]:
    """Host and port of `listen`: `127.0.0.1:8372`, `[::1]:8372`."""
    host, colon, port = listen.rpartition(":")
    if not colon or not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise BadInput(
            f"The setting `listen` is no address with a port: {listen}", hint="Write it as `127.0.0.1:8372`"
        )
    return host.removeprefix("[").removesuffix("]") or "127.0.0.1", int(port)


def _of_file(path: Path) -> dict[str, Any]:
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise BadInput(f"`{path}` cannot be read: {error.strerror}", hint="It holds the settings") from None
    import tomllib  # only where there is a file

    try:
        given = tomllib.loads(content.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadInput(f"`{path}` is no TOML: {error}", hint="docs/settings.md has an example") from None
    known = Settings.__struct_fields__
    for name in given:
        if name not in known:
            raise unknown_name("setting", name, known, see="docs/settings.md lists them")
    return {name: _converted(name, value, f"in `{path}`", strict=True) for name, value in given.items()}


def _of_environment(environ: Mapping[str, str]) -> dict[str, Any]:
    return {
        name: _converted(name, environ[variable(name)], f"given as `{variable(name)}`", strict=False)
        for name in Settings.__struct_fields__
        if environ.get(variable(name))
    }


_TYPES: Final = {field.name: field.type for field in msgspec.structs.fields(Settings)}


def _converted(name: str, value: object, where: str, *, strict: bool) -> object:
    try:
        return msgspec.convert(value, _TYPES[name], strict=strict)
    except msgspec.ValidationError as error:
        raise BadInput(
            f"The setting `{name}` {where} cannot be taken: {str(error).rstrip('.')}",
            hint="docs/settings.md says what each setting may be",
        ) from None


def _check(settings: Settings) -> None:
    host, _ = address_of(settings.listen)
    if bool(settings.tls_cert) != bool(settings.tls_key):
        raise BadInput("TLS needs both `tls_cert` and `tls_key`", hint="Set both, or neither")
    for name in ("tls_cert", "tls_key"):
        path = getattr(settings, name)
        if path and not os.access(path, os.R_OK):
            raise BadInput(
                f"The file of the setting `{name}` cannot be read: {path}", hint="Look at its path and rights"
            )
    if not _is_loopback(host) and not settings.tls_cert and not settings.insecure:
        raise BadInput(
            f"Without TLS the server answers on this machine only, not on `{settings.listen}`",
            hint="Set `tls_cert` and `tls_key`, or `insecure = true` where a proxy in front speaks TLS",
        )


def _is_loopback(host: str) -> bool:
    return host == "localhost" or host == "::1" or host.startswith("127.")
