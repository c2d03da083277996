"""The server's settings: a frozen value, read once from `<home>/cloud/settings.toml` and `TERA_*`.

Invariants:
- the environment takes precedence over the file, and the file over the defaults;
- an unknown name in the file is an error: a setting without effect is worse;
- every setting has a docstring, from which docs/settings.md is generated (app/reference.py).
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta

from teraflock.api.addresses import networks_of
from teraflock.app.home import home as default_home
from teraflock.base.errors import BadInput, unknown_name
from teraflock.base.names import check_place

FOLDER: Final = "cloud"
FILE: Final = "settings.toml"
DATABASE_FILE: Final = "cloud.db"
PID_FILE: Final = "server.pid"
LOG_FILE: Final = "server.log"
ACCESS_LOG_FILE: Final = "access.log"
OPERATOR_KEY_FILE: Final = "operator.key"

NO_ENGINE: Final = "none"
Positive = Annotated[int, Meta(ge=1)]


class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    listen: str = "127.0.0.1:8372"
    """Address and port of the server. An address beyond this machine needs TLS, or `insecure`."""
    insecure: bool = False
    """Allow an address beyond this machine without TLS. API keys then cross the network unencrypted."""
    tls_cert: str = ""
    """File with the certificate chain in PEM format. With `tls_key` the server accepts only HTTPS."""
    tls_key: str = ""
    """File with the private key of `tls_cert`."""
    database: str = ""
    """`postgresql://user@host/name`, or the path of a SQLite file. Empty: `cloud/cloud.db` in the home folder."""
    engine: str = "lxd"
    """The first site: `lxd` (LXD or Incus on this machine), `simulated` (nothing real), or `none` (only `sites`)."""
    sites: Mapping[str, Mapping[str, str]] = {}
    """More sites by name, as tables with a `kind` and the options of its driver. In the environment as JSON, such as
    `{"sky": {"kind": "simulated", "style": "cloud"}}`. You can also add sites with `tera site add`."""
    lxd_socket: str = ""
    """Unix socket of LXD or Incus. Empty: the usual place."""
    pool_gb: Annotated[int, Meta(ge=4, le=1 << 20)] = 64
    """Size of the file for guests' disks. It grows as they are filled. Applies when the pool is created."""
    pool_source: str = ""
    """A disk, partition or btrfs folder for guests' disks instead of a file. Applies when the pool is created."""
    guests_reach_out: bool = True
    """Whether instances can reach the internet through their host (NAT). Private networks: `tera host allow-out`."""
    guest_user_namespaces: bool = False
    """Whether instances may create user namespaces, as rootless containers need. Exposes more of the kernel."""
    guest_io_uring: bool = False
    """Whether instances may use io_uring. Exposes more of the kernel."""
    guest_bpf: bool = False
    """Whether instances may use bpf(2). Exposes more of the kernel."""
    data_bucket: str = ""
    """Where datasets are stored: `s3://BUCKET/PREFIX?endpoint=https://HOST&region=REGION`, with the usual credentials
    of AWS. Empty: `cloud/datasets` in the home folder."""
    run_store: str = ""
    """Where outputs and checkpoints of runs are stored, in the form of `data_bucket`. Empty: `cloud/runs` in the home
    folder."""
    run_buckets: Mapping[str, str] = {}
    """Buckets by region, in the form of `data_bucket`. Rented machines in these regions push checkpoints of runs there
    and read datasets from there, instead of through the server."""
    address_pool: str = ""
    """Public addresses for tenants: networks separated by spaces, such as `203.0.113.16/28`. Traffic to them must reach
    the hosts. Empty: none."""
    guest_connections_per_second: Annotated[int, Meta(ge=0, le=100_000_000)] = 2_000
    """How many connections an instance may open, and accept, in a second. More are dropped. 0: no limit."""
    guest_packets_per_second: Annotated[int, Meta(ge=0, le=100_000_000)] = 300_000
    """How many packets an instance may send, and receive, in a second. More are dropped. 0: no limit."""
    guest_connections_max: Annotated[int, Meta(ge=0, le=100_000_000)] = 10_000
    """How many connections of an instance a host tracks at a time, in each direction. More are dropped. 0: no limit."""
    mould_stock: Annotated[int, Meta(ge=0, le=32)] = 8
    """How many copies of each image in use are prepared in advance, so that launches are fast."""
    vcpu_overcommit: Annotated[float, Meta(ge=1, le=64)] = 16.0
    """How many virtual processors are offered for each real one."""
    disk_overcommit: Annotated[float, Meta(ge=1, le=64)] = 4.0
    """How many times the size of a host's disk is offered. Guests' disks use only what is written."""
    simulated_hosts: str = "4x8xV100,2x0"
    """The hosts of the simulated engine, in groups of hosts × cards × model; `2x0` is two hosts without cards."""
    simulated_boot_seconds: Annotated[float, Meta(ge=0, le=3600)] = 0.5
    """Seconds until a simulated guest answers."""
    simulated_faults: str = ""
    """Faults of a new simulated engine, for tests and rehearsals, such as `create:half:killed`."""
    faults: str = ""
    """Where the server kills itself, for tests of crashes, such as `launch.create:after`."""
    join_listen: str = "0.0.0.0:8733"
    """Address and port for hosts that join (`tera host add`). The port is open only while a token is valid. Empty:
    hosts cannot join."""
    join_address: str = ""
    """The address in the command that `tera host add` prints. Empty: this machine's address on the default route."""
    loops: bool = True
    """Whether this process runs the loops. If not, it only answers requests, and another process runs them."""
    rate_per_second: Annotated[int, Meta(ge=0)] = 200
    """Requests per second that one key, or one address without a key, may send on average. 0 disables all limits on
    requests, also those of organisations and addresses."""
    rate_burst: Positive = 1000
    """Requests that may arrive at once before `rate_per_second` applies. An organisation has twice as many."""
    rate_per_organisation: Annotated[int, Meta(ge=0)] = 400
    """Requests per second that all keys of one organisation may send together. Operators' keys do not count. 0: no
    limit."""
    failed_keys_per_minute: Annotated[int, Meta(ge=0)] = 120
    """Requests per minute without a valid key from one address. Further ones get 429. Valid keys from the same address
    still work. 0: no limit."""
    body_bytes_max: Annotated[int, Meta(ge=65_536, le=64 << 20)] = 1_000_000
    """The largest body of a request, in bytes."""
    connections_max: Annotated[int, Meta(ge=16, le=1_000_000)] = 4096
    """Connections at a time. The limit on open files may lower it: the loops and the engine need some of them.
    When all are in use, the connection that was idle longest is closed."""
    connections_per_address: Positive = 512
    """Connections at a time from one IPv4 address or one IPv6 /64 network; at most half of `connections_max`."""
    trusted_proxies: str = ""
    """Addresses or networks of reverse proxies in front of the server, such as `127.0.0.1, 10.0.0.0/8`. Their
    `X-Forwarded-For` header has the client's address. `connections_per_address` does not apply to them."""
    head_seconds: Annotated[float, Meta(ge=1, le=600)] = 10.0
    """Seconds for a client to send the head of a request, or to complete a TLS handshake."""
    body_seconds: Annotated[float, Meta(ge=1, le=3600)] = 30.0
    """Seconds for a client to send the body of a request."""
    streams_max: Annotated[int, Meta(ge=1, le=10_000)] = 200
    """How many clients may follow events at a time. One in eight is reserved for operators."""
    streams_per_organisation: Positive = 50
    """How many clients of one organisation may follow events at a time; at most half of `streams_max`."""
    threads: Annotated[int, Meta(ge=1, le=256)] = 16
    """Threads for requests that write or that use PostgreSQL. One organisation uses at most half of them."""
    execs_max: Annotated[int, Meta(ge=1, le=1000)] = 128
    """How many commands may run inside instances over the API at a time. One in eight is reserved for operators."""
    execs_per_organisation: Positive = 32
    """How many commands of one organisation may run at a time; at most half of `execs_max`."""
    planners: Annotated[int, Meta(ge=1, le=64)] = 2
    """Processes that compute estimates and plans. One organisation uses at most half of them, but always one."""
    default_organisation_quota: str = (
        "projects=20 instances=100 vcpus=1000 ram=4TB disk=20TB images=500GB"
        " ports=100 networks=40 addresses=8 gpus=16"
    )
    """Quota of a new organisation, over all its projects. `gpus` applies to each GPU model. What is left out has no
    limit. Operators change it for one organisation with `tera quota set --org`."""
    default_project_quota: str = (
        "instances=50 vcpus=500 ram=2TB disk=10TB images=250GB ports=50 networks=5 addresses=4 gpus=8"
    )
    """Quota of a new project, within its organisation's quota. Owners change it with `tera quota set`."""
    metrics_open: bool = False
    """Whether `/metrics` needs no operator's key."""
    traffic_seconds: Annotated[float, Meta(ge=1, le=3600)] = 60.0
    """How often the counters of outgoing traffic are read, in seconds. Bill and budgets follow the readings."""
    copy_minutes: Annotated[int, Meta(ge=0, le=10_080)] = 60
    """How often the disks of instances with the restart policy `elsewhere`, and volumes that are copied, are copied to
    another host, in minutes. The copies count as snapshots. 0: never."""
    alert_webhook: str = ""
    """Address that gets alerts about hosts as signed JSON, such as `https://example.com/alerts`. Empty: none."""
    alert_webhook_secret_file: str = ""
    """File with the secret that signs the alerts, at least 16 characters. `alert_webhook` needs it."""
    alert_webhook_private: bool = False
    """Whether `alert_webhook` may have a private address."""
    console_url: str = ""
    """The address of this server as browsers see it, such as `https://cloud.example.com`. `oidc_issuer` needs it."""
    oidc_issuer: str = ""
    """The identity provider that members can sign in with (OpenID Connect), such as `https://login.example.com`.
    Empty: none."""
    oidc_client_id: str = ""
    """The client id of this server at the identity provider."""
    oidc_client_secret_file: str = ""
    """File with the client secret. Empty: a public client, which only PKCE protects."""
    oidc_name: str = ""
    """The identity provider's name on the sign-in button. Empty: its host name."""
    oidc_organisation: str = ""
    """Organisation that people join when they first sign in with the identity provider. Empty: only members who were
    invited can sign in."""
    oidc_domains: str = ""
    """Domains of e-mail addresses that may join `oidc_organisation`, separated by spaces. `*`: everyone whom the
    provider signs in."""
    oidc_role: Literal["member", "viewer", "billing"] = "member"
    """Role of people who join `oidc_organisation`."""
    sign_up: bool = False
    """Whether strangers can create an organisation on the sign-in page. It pays in advance."""
    sign_up_credit: str = "0"
    """Credit for each organisation that signs up, in the currency of the price book, such as `10`."""
    sign_up_quota: str = (
        "projects=1 instances=2 vcpus=32 ram=256GB disk=500GB images=20GB data=20GB"
        " ports=4 networks=2 addresses=0 gpus=1"
    )
    """Quota of an organisation that signs up. It has one project, because the credit belongs to one."""
    sign_up_per_day: Annotated[int, Meta(ge=1, le=1_000_000)] = 100
    """How many organisations can sign up in 24 hours. One address can create five in an hour."""
    issuer: str = "Teraflock"
    """Sender of invoices: a name and the lines of an address."""
    issuer_tax_number: str = ""
    """The seller's tax number, printed on invoices."""
    invoice_days: Annotated[int, Meta(ge=0, le=365)] = 14
    """Days until an invoice is due. 0: invoices have no due date."""
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    """Log level of the server."""
    access_log: bool = False
    """Whether every request is written to `cloud/access.log`, with address, key and path. It keeps 80 MB."""


class Place(msgspec.Struct, frozen=True):
    """The paths of the server's files."""

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
    """Read the settings of the server with this home. Raises `BadInput` if one is invalid."""
    _refuse_emptied(at)
    given = {**_of_file(at.settings), **_of_environment(environ)}
    settings = msgspec.structs.replace(Settings(), **given)
    _check(settings)
    return settings


def _refuse_emptied(at: Place) -> None:
    """Refuse an empty file next to a database: it was emptied by accident, and the defaults may mean another engine."""
    try:
        is_empty = not at.settings.read_bytes().strip()
    except OSError:
        return
    if is_empty and (at.operator_key.exists() or (at.folder / DATABASE_FILE).exists()):
        raise BadInput(
            f"`{at.settings}` is empty. It must at least set the `engine` of this installation",
            hint=f"Restore its content (`unzip -p FILE settings.toml` reads it from a backup), or `rm {at.settings}`"
            " and run `make up`, which writes it again",
        )


def variable(name: str) -> str:
    """The environment variable for a setting."""
    return f"TERA_{name.upper()}"


def address_of(listen: str) -> tuple[str, int]:
    """Host and port of `listen`: `127.0.0.1:8372`, `[::1]:8372`."""
    host, colon, port = listen.rpartition(":")
    if not colon or not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise BadInput(
            f"The setting `listen` is not an address with a port: {listen}",
            hint="Write it as `127.0.0.1:8372`",
        )
    return host.removeprefix("[").removesuffix("]") or "127.0.0.1", int(port)


def _of_file(path: Path) -> dict[str, Any]:
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise BadInput(
            f"Could not read `{path}`: {error.strerror}", hint="Check the permissions of the settings file"
        ) from None
    import tomllib  # only if there is a file

    try:
        given = tomllib.loads(content.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadInput(
            f"`{path}` is not valid TOML: {error}",
            hint="Correct that line. docs/settings.md lists all settings. Instances and data are not affected",
        ) from None
    known = Settings.__struct_fields__
    for name in given:
        if name not in known:
            raise unknown_name("setting", name, known, see="docs/settings.md lists all settings")
    return {name: _converted(name, value, f"in `{path}`", strict=True) for name, value in given.items()}


def _of_environment(environ: Mapping[str, str]) -> dict[str, Any]:
    return {
        name: _converted(name, environ[variable(name)], f"in `{variable(name)}`", strict=False)
        for name in Settings.__struct_fields__
        if environ.get(variable(name))
    }


_TYPES: Final = {field.name: field.type for field in msgspec.structs.fields(Settings)}


def _converted(name: str, value: object, where: str, *, strict: bool) -> object:
    try:
        if not strict and name == "sites" and isinstance(value, str):
            return msgspec.json.decode(value, type=dict[str, dict[str, str]])
        return msgspec.convert(value, _TYPES[name], strict=strict)
    except (msgspec.ValidationError, msgspec.DecodeError) as error:
        raise BadInput(
            f"The setting `{name}` {where} is invalid: {str(error).rstrip('.')}",
            hint="docs/settings.md describes each setting",
        ) from None


def _check(settings: Settings) -> None:
    host, _ = address_of(settings.listen)
    if bool(settings.tls_cert) != bool(settings.tls_key):
        raise BadInput("TLS needs both `tls_cert` and `tls_key`", hint="Set both, or neither")
    for name in ("tls_cert", "tls_key"):
        path = getattr(settings, name)
        if path and not os.access(path, os.R_OK):
            raise BadInput(
                f"Could not read the file of the setting `{name}`: {path}",
                hint="Check its path and permissions",
            )
    _check_quotas(settings)
    _check_sites(settings)
    if settings.trusted_proxies:
        networks_of(settings.trusted_proxies)
    if not _is_loopback(host) and not settings.tls_cert and not settings.insecure:
        raise BadInput(
            f"Without TLS, the server can listen only on this machine, not on `{settings.listen}`",
            hint="Set `tls_cert` and `tls_key`, or set `insecure = true` if a proxy in front provides TLS",
        )


def _check_sites(settings: Settings) -> None:
    from teraflock.drivers.registry import kinds

    known = (*kinds(), NO_ENGINE)
    if settings.engine not in known:
        raise BadInput(
            f"The setting `engine` cannot be `{settings.engine[:40]}`", hint=f"Use one of: {', '.join(known)}"
        )
    for name, options in settings.sites.items():
        check_place(name, "a site")
        if options.get("kind") not in kinds():
            raise BadInput(
                f"The site `{name}` needs a `kind`",
                hint=f"Use one of: {', '.join(kinds())}. docs/settings.md has an example",
            )


def _check_quotas(settings: Settings) -> None:
    from teraflock.tenant.quota.parse import parse_organisation_quota, parse_project_quota

    for name, parse in (
        ("default_organisation_quota", parse_organisation_quota),
        ("default_project_quota", parse_project_quota),
    ):
        try:
            parse(getattr(settings, name))
        except BadInput as error:
            raise BadInput(f"Invalid setting `{name}`: {error.sentence}", hint=error.hint) from None


def _is_loopback(host: str) -> bool:
    return host == "localhost" or host == "::1" or host.startswith("127.")
