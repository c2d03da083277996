"""The installation's own certificate authority, for connections between the server and its hosts.

Its key and the server's key are derived from the installation's secret, so nothing has to be stored, and every server
process of the installation has the same identity. A host makes its own key, which never leaves it.

Certificates say what they are for: the server's is for clients of hosts and for joining, those of hosts are only for
hosts. One host can therefore not give orders to another.
"""

import ssl
import tempfile
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Final

import msgspec
from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.x509.oid import ExtendedKeyUsageOID as Usage
from cryptography.x509.oid import NameOID

from teraflock.base.errors import BadInput

SINCE: Final = datetime(2020, 1, 1, tzinfo=UTC)
UNTIL: Final = datetime(2120, 1, 1, tzinfo=UTC)
HOST_LIFETIME: Final = timedelta(days=3650)
EARLIER: Final = timedelta(days=1)
"""A host's clock may be behind ours."""
NAME: Final = "Teraflock installation"
SERVER: Final = "server"


class Identity(msgspec.Struct, frozen=True, kw_only=True):
    """A certificate and its key, and the authority's certificate, in PEM format."""

    certificate: str
    key: str
    authority: str

    @property
    def fingerprint(self) -> str:
        return fingerprint(self.certificate)


class Authority:
    def __init__(self, derive: Callable[[str], bytes]) -> None:
        """`derive` returns 32 secret bytes for a purpose, always the same."""
        self._key = Ed25519PrivateKey.from_private_bytes(derive("host authority"))
        self._server_key = Ed25519PrivateKey.from_private_bytes(derive("host authority: server"))

    @property
    def certificate(self) -> str:
        basic = x509.BasicConstraints(ca=True, path_length=0)
        builder = _builder(NAME, SINCE, UNTIL).serial_number(1).public_key(self._key.public_key())
        return _pem(builder.add_extension(basic, critical=True).sign(self._key, None))

    @property
    def server(self) -> Identity:
        """The server's identity: always the same certificate, byte for byte."""
        builder = _builder(SERVER, SINCE, UNTIL).serial_number(2).public_key(self._server_key.public_key())
        usage = x509.ExtendedKeyUsage([Usage.CLIENT_AUTH, Usage.SERVER_AUTH])
        signed = builder.add_extension(usage, critical=True).sign(self._key, None)
        return Identity(certificate=_pem(signed), key=_key_pem(self._server_key), authority=self.certificate)

    def issue(self, request: str, name: str, now: datetime) -> str:
        """The certificate for a host's request. Only its key is taken from the request."""
        found = _loaded(request)
        builder = _builder(name, now - EARLIER, now + HOST_LIFETIME).serial_number(
            x509.random_serial_number()
        )
        usage = x509.ExtendedKeyUsage([Usage.SERVER_AUTH])
        return _pem(
            builder.public_key(found.public_key()).add_extension(usage, critical=True).sign(self._key, None)
        )

    def request_key(self, request: str) -> str:
        """Identifies the key of a certificate request."""
        form = serialization.PublicFormat.SubjectPublicKeyInfo
        public = _loaded(request).public_key().public_bytes(serialization.Encoding.DER, form)
        return sha256(public).hexdigest()

    def fingerprint(self, certificate: str) -> str:
        return fingerprint(certificate)


def _loaded(request: str) -> x509.CertificateSigningRequest:
    try:
        found = x509.load_pem_x509_csr(request.encode())
        if found.is_signature_valid and isinstance(found.public_key(), Ed25519PublicKey):
            return found
    except (ValueError, UnsupportedAlgorithm):
        pass
    raise BadInput("The certificate request of the host is not valid")


def new_key() -> str:
    return _key_pem(Ed25519PrivateKey.generate())


def request_for(key: str, name: str) -> str:
    """A certificate request, signed with the key that it is for."""
    loaded = serialization.load_pem_private_key(key.encode(), None)
    assert isinstance(loaded, Ed25519PrivateKey)
    builder = x509.CertificateSigningRequestBuilder().subject_name(_name(name))
    return builder.sign(loaded, None).public_bytes(serialization.Encoding.PEM).decode()


def fingerprint(certificate: str) -> str:
    """SHA-256 of a certificate, in hexadecimal."""
    return sha256(ssl.PEM_cert_to_DER_cert(certificate)).hexdigest()


def client_context(identity: Identity) -> ssl.SSLContext:
    """For connections from the server to hosts. The caller also compares the host's fingerprint."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    return _mutual(context, identity)


def host_context(identity: Identity) -> ssl.SSLContext:
    """For connections that a host accepts: only from the server."""
    return _mutual(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), identity)


def joining_context(identity: Identity) -> ssl.SSLContext:
    """For connections that the server accepts from hosts that join. They have no certificate yet."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    return _with_identity(context, identity)


def _mutual(context: ssl.SSLContext, identity: Identity) -> ssl.SSLContext:
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(cadata=identity.authority)
    return _with_identity(context, identity)


def _with_identity(context: ssl.SSLContext, identity: Identity) -> ssl.SSLContext:
    """Python reads certificates only from files. Nobody else can read this one, and it is removed at once."""
    with tempfile.NamedTemporaryFile("w", suffix=".pem") as file:
        file.write(identity.key + identity.certificate)
        file.flush()
        context.load_cert_chain(file.name)
    return context


def _builder(name: str, since: datetime, until: datetime) -> x509.CertificateBuilder:
    builder = x509.CertificateBuilder().subject_name(_name(name)).issuer_name(_name(NAME))
    return builder.not_valid_before(since).not_valid_after(until)


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _pem(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(serialization.Encoding.PEM).decode()


def _key_pem(key: Ed25519PrivateKey) -> str:
    form, plain = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    return key.private_bytes(serialization.Encoding.PEM, form, plain).decode()
