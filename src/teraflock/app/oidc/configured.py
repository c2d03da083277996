"""The identity provider of the settings, and who may join by it."""

from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from teraflock.app.oidc.fetching import is_safe_address
from teraflock.app.oidc.provider import OidcProvider, ProviderSettings
from teraflock.app.settings import Settings
from teraflock.base.clock import Clock
from teraflock.base.errors import BadInput
from teraflock.base.names import check_name
from teraflock.tenant.identity.model import Joining
from teraflock.tenant.model import Role

RETURN_PATH: Final = "/console/sign-in/oidc/return"


def provider_of(settings: Settings, clock: Clock) -> OidcProvider | None:
    """None: there is none. Raises `BadInput` if the settings cannot be used."""
    if not settings.oidc_issuer:
        return None
    for name in ("oidc_issuer", "console_url"):
        value = getattr(settings, name)
        parts = urlsplit(value) if is_safe_address(value) else None
        if parts is None or parts.query or parts.fragment:
            raise BadInput(
                f"Sign-in by an identity provider needs an HTTPS address in the setting `{name}`",
                hint="Write it as `https://login.example.com`",
            )
    if urlsplit(settings.console_url).path.strip("/"):
        raise BadInput(
            "The setting `console_url` has a path",
            hint="Write only the address, such as `https://cloud.example.com`",
        )
    if not settings.oidc_client_id:
        raise BadInput(
            "`oidc_issuer` needs the setting `oidc_client_id`",
            hint=f"Register this server at the provider with the redirect address {_return_to(settings)}",
        )
    return OidcProvider(
        ProviderSettings(
            issuer=settings.oidc_issuer,
            client_id=settings.oidc_client_id,
            client_secret=_secret(settings.oidc_client_secret_file),
            return_to=_return_to(settings),
            name=settings.oidc_name or urlsplit(settings.oidc_issuer).hostname or "",
        ),
        clock,
    )


def joining_of(settings: Settings) -> Joining:
    domains = frozenset(settings.oidc_domains.lower().replace(",", " ").split())
    if settings.oidc_organisation:
        check_name(settings.oidc_organisation, "an organisation")
        if not domains:
            raise BadInput(
                "`oidc_organisation` needs the setting `oidc_domains`",
                hint="Name the domains of your e-mail addresses, such as `example.com`. `*` lets everyone join whom"
                " the provider signs in",
            )
    return Joining(organisation=settings.oidc_organisation, domains=domains, role=Role(settings.oidc_role))


def _return_to(settings: Settings) -> str:
    return settings.console_url.rstrip("/") + RETURN_PATH


def _secret(path: str) -> str:
    if not path:
        return ""
    try:
        secret = Path(path).read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError):
        secret = ""
    if not secret:
        raise BadInput(
            f"Could not read the file of the setting `oidc_client_secret_file`: {path}",
            hint="Check its path and permissions. It contains the client secret and nothing else",
        )
    return secret
