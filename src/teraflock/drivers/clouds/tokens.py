"""Signers that fetch a short-lived token and send it as `Authorization: Bearer`: Google, Microsoft and IBM."""

import base64
import json
from abc import abstractmethod
from datetime import datetime, timedelta
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from teraflock.base.errors import BadInput
from teraflock.drivers.clouds.calls import CloudCall, CloudReply
from teraflock.drivers.clouds.signing import Signer, SigningRequest, parts_of

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey

TOKEN_SERVICE: Final = "token"  # noqa: S105 -- the name of a service
GOOGLE_TOKENS: Final = "https://oauth2.googleapis.com/token"
GOOGLE_SCOPE: Final = "https://www.googleapis.com/auth/cloud-platform"
AZURE_SCOPE: Final = "https://management.azure.com/.default"
TOKEN_TIME: Final = timedelta(hours=1)
MARGIN: Final = timedelta(minutes=2)
"""A token is replaced this long before it ends."""


class TokenSigner(Signer):
    def __init__(self, *secrets: str) -> None:
        super().__init__(*secrets)
        self._given = self._secrets
        self._token = ""
        self._until: datetime | None = None

    @abstractmethod
    def _asked(self, now: datetime) -> CloudCall:
        """The call that returns a token."""

    def preparation(self, now: datetime) -> CloudCall | None:
        if self._token and self._until is not None and now < self._until - MARGIN:
            return None
        return self._asked(now)

    def prepared(self, reply: CloudReply, now: datetime) -> None:
        self._token = str(reply.body["access_token"])
        self._until = now + timedelta(seconds=float(reply.body.get("expires_in", TOKEN_TIME.total_seconds())))
        self._secrets = (*self._given, self._token)

    def refused(self) -> None:
        self._until = None

    def headers(self, request: SigningRequest) -> dict[str, str]:
        return {"Authorization": f"Bearer {self._token}"}


def _token_call(path: str, form: dict[str, str]) -> CloudCall:
    return CloudCall(method="POST", path=path, service=TOKEN_SERVICE, body=form, form=True, signed=False)


def service_account(secret: str) -> dict[str, str]:
    """The fields of a Google service account's key file."""
    try:
        found = json.loads(secret)
        fields = {name: str(found[name]) for name in ("client_email", "private_key", "project_id")}
    except (ValueError, KeyError, TypeError):
        raise BadInput(
            "Credentials of Google Cloud are the JSON key file of a service account",
            hint="Create one with `gcloud iam service-accounts keys create`",
        ) from None
    return fields


class GoogleSigner(TokenSigner):
    """Exchanges a JWT, signed with the service account's RSA key, for a token."""

    def __init__(self, secret: str) -> None:
        fields = service_account(secret)
        key = fields["private_key"]
        super().__init__(secret, key, *(line for line in key.splitlines() if line and "-----" not in line))
        self._email, self._key = fields["client_email"], key

    def _asked(self, now: datetime) -> CloudCall:
        grant = "urn:ietf:params:oauth:grant-type:jwt-bearer"
        return _token_call("/token", {"grant_type": grant, "assertion": self.assertion(now)})

    def assertion(self, now: datetime) -> str:
        began = int(now.timestamp())
        claims = {
            "iss": self._email,
            "scope": GOOGLE_SCOPE,
            "aud": GOOGLE_TOKENS,
            "iat": began,
            "exp": began + int(TOKEN_TIME.total_seconds()),
        }
        signed = f"{_encoded({'alg': 'RS256', 'typ': 'JWT'})}.{_encoded(claims)}"
        return f"{signed}.{_unpadded(rsa_sha256(self._key, signed.encode()))}"


def rsa_sha256(private_key: str, content: bytes) -> bytes:
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15

    return _rsa_key(private_key).sign(content, PKCS1v15(), hashes.SHA256())


@cache
def _rsa_key(private_key: str) -> "RSAPrivateKey":
    """Read once: checking a key takes fifty times as long as signing with it. There are as many as accounts."""
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey

    try:
        key = serialization.load_pem_private_key(private_key.encode(), password=None)
    except (ValueError, TypeError):
        raise BadInput("The private key of these credentials cannot be read") from None
    if not isinstance(key, RSAPrivateKey):
        raise BadInput("The private key of these credentials is not an RSA key")
    return key


def _encoded(value: Any) -> str:
    return _unpadded(json.dumps(value, separators=(",", ":")).encode())


def _unpadded(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode("ascii")


class AzureSigner(TokenSigner):
    """Client credentials of an application: `TENANT:CLIENT_ID:CLIENT_SECRET`."""

    def __init__(self, secret: str) -> None:
        self._tenant, self._client, password = parts_of(
            secret, "Azure", "TENANT_ID", "CLIENT_ID", "CLIENT_SECRET"
        )
        super().__init__(password)
        self._password = password

    def _asked(self, now: datetime) -> CloudCall:
        form = {
            "grant_type": "client_credentials",
            "client_id": self._client,
            "client_secret": self._password,
            "scope": AZURE_SCOPE,
        }
        return _token_call(f"/{self._tenant}/oauth2/v2.0/token", form)


class IbmSigner(TokenSigner):
    """An API key of IBM Cloud."""

    def __init__(self, secret: str) -> None:
        super().__init__(secret.strip())
        self._key = secret.strip()

    def _asked(self, now: datetime) -> CloudCall:
        grant = "urn:ibm:params:oauth:grant-type:apikey"
        return _token_call("/identity/token", {"grant_type": grant, "apikey": self._key})
