"""Signers that sign each request with a secret key: Tencent, Alibaba, Huawei, Baidu and Oracle.

Each follows the provider's published scheme. `tests/unit/drivers/clouds/test_signatures.py` has signatures that the
providers' own SDKs made, and compares.
"""

import base64
import hashlib
import hmac
import secrets
from collections.abc import Callable
from datetime import UTC, datetime
from email.utils import format_datetime
from typing import Final
from urllib.parse import parse_qsl, quote, urlsplit

from teraflock.base.errors import BadInput
from teraflock.drivers.clouds.signing import Signer, SigningRequest, parts_of
from teraflock.drivers.clouds.tokens import rsa_sha256

BAIDU_SECONDS: Final = 1800


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _mac(key: bytes, text: str) -> bytes:
    return hmac.digest(key, text.encode(), "sha256")


def _quoted(text: str) -> str:
    return quote(text, safe="~")


def _query(request: SigningRequest) -> str:
    """The parameters in the order that all of these schemes want."""
    pairs = sorted(parse_qsl(urlsplit(request.url).query, keep_blank_values=True))
    return "&".join(f"{_quoted(name)}={_quoted(value)}" for name, value in pairs)


def _path(request: SigningRequest) -> str:
    return urlsplit(request.url).path or "/"


class _KeySigner(Signer):
    title = ""

    def __init__(self, secret: str) -> None:
        self._id, self._key = parts_of(secret, self.title, "ACCESS_KEY", "SECRET_KEY")
        super().__init__(self._key)


class TencentSigner(_KeySigner):
    """TC3-HMAC-SHA256."""

    title = "Tencent Cloud"

    def headers(self, request: SigningRequest) -> dict[str, str]:
        stamp, day = str(int(request.at.timestamp())), request.at.astimezone(UTC).strftime("%Y-%m-%d")
        kind, host = request.headers["Content-Type"], request.headers["Host"]
        service = "vpc" if "vpc" in (host.partition(".")[0], _path(request).strip("/")) else "cvm"
        signed = "content-type;host"
        canonical = "\n".join(
            [
                request.method,
                "/",
                "",
                f"content-type:{kind}\nhost:{host}\n",
                signed,
                _sha256(request.content),
            ]
        )
        scope = f"{day}/{service}/tc3_request"
        text = f"TC3-HMAC-SHA256\n{stamp}\n{scope}\n{_sha256(canonical.encode())}"
        key = _mac(_mac(_mac(f"TC3{self._key}".encode(), day), service), "tc3_request")
        credential = f"TC3-HMAC-SHA256 Credential={self._id}/{scope}, SignedHeaders={signed}"
        return {
            "X-TC-Timestamp": stamp,
            "Authorization": f"{credential}, Signature={_mac(key, text).hex()}",
        }


class AlibabaSigner(_KeySigner):
    """ACS3-HMAC-SHA256."""

    title = "Alibaba Cloud"

    def __init__(self, secret: str, nonce: Callable[[], str] = lambda: secrets.token_hex(16)) -> None:
        super().__init__(secret)
        self._nonce = nonce

    def headers(self, request: SigningRequest) -> dict[str, str]:
        added = {
            "x-acs-content-sha256": _sha256(request.content),
            "x-acs-date": request.at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "x-acs-signature-nonce": self._nonce(),
        }
        lowered = {name.lower(): value.strip() for name, value in {**request.headers, **added}.items()}
        names = sorted(
            name for name in lowered if name in ("host", "content-type") or name.startswith("x-acs-")
        )
        signed = ";".join(names)
        headers = "".join(f"{name}:{lowered[name]}\n" for name in names)
        canonical = "\n".join(
            [request.method, _path(request), _query(request), headers, signed, added["x-acs-content-sha256"]]
        )
        signature = _mac(self._key.encode(), f"ACS3-HMAC-SHA256\n{_sha256(canonical.encode())}").hex()
        credential = f"ACS3-HMAC-SHA256 Credential={self._id},SignedHeaders={signed}"
        return {**added, "Authorization": f"{credential},Signature={signature}"}


class HuaweiSigner(_KeySigner):
    """SDK-HMAC-SHA256."""

    title = "Huawei Cloud"

    def headers(self, request: SigningRequest) -> dict[str, str]:
        stamp = request.at.astimezone(UTC).strftime("%Y%m%dT%H%M%SZ")
        wanted = {"host": request.headers["Host"], "x-sdk-date": stamp}
        if kind := request.headers.get("Content-Type"):
            wanted["content-type"] = kind
        names = sorted(wanted)
        headers = "".join(f"{name}:{wanted[name]}\n" for name in names)
        path = f"{_path(request).rstrip('/')}/"
        signed = ";".join(names)
        canonical = "\n".join(
            [request.method, path, _query(request), headers, signed, _sha256(request.content)]
        )
        text = f"SDK-HMAC-SHA256\n{stamp}\n{_sha256(canonical.encode())}"
        credential = f"SDK-HMAC-SHA256 Access={self._id}, SignedHeaders={signed}"
        signature = _mac(self._key.encode(), text).hex()
        return {"X-Sdk-Date": stamp, "Authorization": f"{credential}, Signature={signature}"}


class BaiduSigner(_KeySigner):
    """bce-auth-v1, with the host and the date signed."""

    title = "Baidu Cloud"

    def headers(self, request: SigningRequest) -> dict[str, str]:
        stamp = request.at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        info = f"bce-auth-v1/{self._id}/{stamp}/{BAIDU_SECONDS}"
        wanted = {"host": request.headers["Host"], "x-bce-date": stamp}
        headers = "\n".join(sorted(f"{name}:{_quoted(value)}" for name, value in wanted.items()))
        text = "\n".join([request.method, _path(request), _query(request), headers])
        signature = _mac(_mac(self._key.encode(), info).hex().encode(), text).hex()
        return {"x-bce-date": stamp, "Authorization": f"{info}/{';'.join(sorted(wanted))}/{signature}"}


class OracleSigner(Signer):
    """HTTP Signatures with RSA-SHA256. Credentials are the lines of an OCI configuration and the PEM key."""

    def __init__(self, secret: str) -> None:
        fields = oracle_fields(secret)
        self._key = fields["key"]
        self._id = "/".join(fields[name] for name in ("tenancy", "user", "fingerprint"))
        super().__init__(
            self._key, *(line for line in self._key.splitlines() if line and "-----" not in line)
        )

    def headers(self, request: SigningRequest) -> dict[str, str]:
        parts = urlsplit(request.url)
        target = f"{request.method.lower()} {parts.path}{'?' if parts.query else ''}{parts.query}"
        added = {"date": _http_date(request.at)}
        wanted = {**added, "(request-target)": target, "host": request.headers["Host"]}
        if request.method in ("POST", "PUT", "PATCH"):
            digest = base64.b64encode(hashlib.sha256(request.content).digest()).decode()
            body = {"content-length": str(len(request.content)), "x-content-sha256": digest}
            kind = request.headers.get("Content-Type", "application/json")
            wanted |= {"content-length": body["content-length"], "content-type": kind}
            wanted |= {"x-content-sha256": digest}
            added |= {**body, "Content-Type": kind}
        text = "\n".join(f"{name}: {value}" for name, value in wanted.items())
        signature = base64.b64encode(rsa_sha256(self._key, text.encode())).decode()
        values = {
            "algorithm": "rsa-sha256",
            "headers": " ".join(wanted),
            "keyId": self._id,
            "signature": signature,
            "version": "1",
        }
        said = ",".join(f'{name}="{value}"' for name, value in values.items())
        return {**added, "Authorization": f"Signature {said}"}


def _http_date(at: datetime) -> str:
    return format_datetime(at.astimezone(UTC), usegmt=True)


def oracle_fields(secret: str) -> dict[str, str]:
    """`tenancy`, `user`, `fingerprint` and the PEM `key`."""
    lines = [line.strip() for line in secret.strip().splitlines()]
    begin = next((number for number, line in enumerate(lines) if line.startswith("-----BEGIN")), len(lines))
    pairs = (line.partition("=") for line in lines[:begin] if "=" in line)
    fields = {name.strip(): value.strip() for name, _, value in pairs}
    fields["key"] = "\n".join(lines[begin:]) + "\n" if begin < len(lines) else ""
    if missing := [name for name in ("tenancy", "user", "fingerprint", "key") if not fields.get(name)]:
        raise BadInput(
            f"Credentials of Oracle Cloud lack {', '.join(missing)}",
            hint="Write the lines `tenancy=…`, `user=…`, `fingerprint=…`, and below them the private key in PEM form",
        )
    return fields
