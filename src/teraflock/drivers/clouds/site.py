"""Opens the site of an account at a public cloud."""

import hashlib
import importlib

from teraflock.base.errors import BadInput
from teraflock.drivers.clouds.engine import CloudSite
from teraflock.drivers.clouds.http import CloudTransport, HttpTransport
from teraflock.drivers.clouds.link import SshLink
from teraflock.drivers.clouds.model import HOURS, HOURS_OPTION, CloudApi
from teraflock.drivers.clouds.pacing import pacer_of
from teraflock.drivers.clouds.table import CLOUDS
from teraflock.drivers.opening import DriverKind, Opening
from teraflock.instance.account.rules import check_base_url

OPTIONS = {
    "key": "The credentials. `tera account add` stores them; otherwise `env:VARIABLE` or `file:PATH`",
    "base_url": "The address of the API. Default: the provider's own",
}


def cloud_class(kind: str) -> type[CloudApi]:
    module, _, name = CLOUDS[kind].partition(":")
    found: type[CloudApi] = getattr(importlib.import_module(f"teraflock.drivers.clouds.{module}"), name)
    assert issubclass(found, CloudApi), f"{kind} is not a cloud"
    return found


def kind_of(kind: str) -> DriverKind:
    cloud = cloud_class(kind)
    return DriverKind(
        summary=f"Machines rented at {cloud.title}",
        options={**OPTIONS, **({HOURS: HOURS_OPTION} if cloud.has_time_limit else {}), **cloud.options},
        secrets=frozenset({"key"}),
        open=lambda opening: _opened(cloud, opening),
    )


def _opened(cloud: type[CloudApi], opening: Opening) -> CloudSite:
    if opening.derive is None:
        raise BadInput(f"The site `{opening.name}` needs the installation's key")
    base_url = opening.options.get("base_url", "")
    if base_url:
        check_base_url(base_url)
    secret = opening.secret("key")
    options = {**cloud.facts(secret), **opening.options}
    account = hashlib.sha256(f"{cloud.kind}\0{base_url}\0{secret}".encode()).hexdigest()
    return CloudSite(
        opening.name,
        opening.mark,
        opening.clock,
        cloud=cloud(options),
        transport=_transport(cloud, base_url, secret),
        signer=cloud.signer(secret),
        pacer=pacer_of(account, cloud.pace),
        link=SshLink(),
        derive=opening.derive,
        folder=opening.folder,
    )


def _transport(cloud: type[CloudApi], base_url: str, secret: str) -> CloudTransport:
    """How calls reach the provider. An operator's base URL is for all its services."""
    if cloud.kind == "aws":
        from teraflock.drivers.clouds.boto import BotoTransport

        return BotoTransport(secret, base_url)
    if base_url:
        services = {name: f"{base_url.rstrip('/')}/{name}" for name in cloud.services}
        return HttpTransport(base_url, services)
    return HttpTransport(cloud.base_url, cloud.services)
