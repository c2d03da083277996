"""The text of keys: created keys are parsed, other texts are refused."""

from hashlib import sha256

from hypothesis import given
from hypothesis import strategies as st

from teraflock.tenant.key.secret import SECRET_BYTES, digest_of, id_of, is_secret, new_secret
from teraflock.tenant.model import KeyId

ID = KeyId("key_m7faemf3srk1tvhr")


@given(st.binary(min_size=SECRET_BYTES, max_size=SECRET_BYTES))
def test_a_key_has_its_id_and_matches_its_secret(bits: bytes) -> None:
    secret = new_secret(ID, lambda size: bits[:size])
    assert secret == f"tera_m7faemf3srk1tvhr_{bits.hex()}"
    assert id_of(secret) == ID
    assert is_secret(secret, digest_of(secret))
    assert bits.hex() not in digest_of(secret)
    assert digest_of(secret) == sha256(secret.encode()).hexdigest()


@given(
    st.binary(min_size=32, max_size=32),
    st.integers(0, 85),
    st.characters(min_codepoint=33, max_codepoint=126),
)
def test_a_key_with_one_changed_character_is_invalid(bits: bytes, at: int, character: str) -> None:
    secret = new_secret(ID, lambda size: bits)
    other = secret[:at] + character + secret[at + 1 :]
    assert other == secret or not is_secret(other, digest_of(secret))


@given(st.text() | st.text(alphabet="tera_0123456789abcdef", min_size=80, max_size=90))
def test_other_texts_are_not_keys(text: str) -> None:
    id = id_of(text)
    if id is not None:
        assert text.startswith("tera_")  # the alphabet has no hyphen
        assert text.isascii()
        assert len(text) == 86


def test_the_parts_of_a_key_have_fixed_lengths() -> None:
    bits = "0" * 64
    for text in (
        "", "tera", "tera__", f"tera_{'a' * 15}_{bits}a", f"tera_{'a' * 17}_{bits[1:]}", f"Tera_{'a' * 16}_{bits}",
        f"tera-{'a' * 16}-{bits}", f"tera_{'a' * 16}_{bits} ", f"tera_{'é' * 16}_{bits}",
    ):  # fmt: skip
        assert id_of(text) is None, text
