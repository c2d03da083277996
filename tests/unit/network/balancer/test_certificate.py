"""Certificates of balancers: only a valid pair is accepted, and it is written again by us."""

from datetime import UTC, datetime, timedelta

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
)
from tests.unit.network.balancer.certificates import NOW, pem_of, self_signed

from teraflock.base.errors import BadInput
from teraflock.network.balancer.certificate import certificate_from


def test_a_pair_is_accepted_and_written_again() -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    chain, text = self_signed(key), pem_of(key)
    made = certificate_from(f"hello\n{chain}", f"more text\n{text}", now=NOW)
    assert made.chain == chain
    assert made.key == text
    assert made.ends_at == NOW.replace(microsecond=0) + timedelta(days=30)


def test_what_does_not_fit_is_refused_in_one_sentence() -> None:
    key, other = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    chain, text = self_signed(key), pem_of(key)
    locked = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"x")).decode()
    small = rsa.generate_private_key(65_537, 1024)
    curved = ec.generate_private_key(ec.SECP256K1())
    odd = ed25519.Ed25519PrivateKey.generate()
    odd_text = odd.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    for given, secret, now, sentence in (
        (chain, pem_of(other), NOW, "The certificate does not match the key"),
        ("nothing", text, NOW, "The certificate is not in PEM format"),
        (chain, "nothing", NOW, "The key is not in PEM format"),
        (chain, chain, NOW, "The key is not in PEM format"),
        (chain, locked, NOW, "The key has a password"),
        (self_signed(small), pem_of(small), NOW, "The key is of a kind that balancers do not use"),
        (self_signed(curved), pem_of(curved), NOW, "The key is of a kind that balancers do not use"),
        (self_signed(odd), odd_text, NOW, "The key is of a kind that balancers do not use"),
        (
            chain,
            text,
            NOW + timedelta(days=31),
            "The certificate is valid from 2026-11-15 to 2026-12-16 only",
        ),
        (chain, text, datetime(2020, 1, 1, tzinfo=UTC), "The certificate is valid from"),
        (chain * 11, text, NOW, "The certificate's file has 11 certificates"),
    ):
        with pytest.raises(BadInput, match=sentence):
            certificate_from(given, secret, now=now)
