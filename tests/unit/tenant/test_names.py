"""Rules for names: projects have host name labels as names, members may have any name."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from teraflock.base.errors import BadInput
from teraflock.tenant.names import check_key_name, check_member_name, check_name


@given(st.text(max_size=80))
def test_valid_names_are_host_name_labels(name: str) -> None:
    try:
        check_name("a project", name)
    except BadInput:
        return
    assert 0 < len(name) <= 63
    assert name.isascii()
    assert name == name.lower()
    assert name.replace("-", "").isalnum()
    assert name[0].isalpha()
    assert name[-1] != "-"


@pytest.mark.parametrize("name", ["a", "a1", "lab-2", "a" * 63])
def test_valid_names_are_accepted(name: str) -> None:
    check_name("a project", name)


@pytest.mark.parametrize(
    "name", ["", "A", "1a", "a-", "-a", "a_b", "a.b", "a/b", "é", "a" * 64, "a\n", "a\x00"]
)
def test_invalid_names_are_refused(name: str) -> None:
    with pytest.raises(BadInput):
        check_name("a project", name)


@pytest.mark.parametrize("name", ["", " ", "a b", "a\n", "a\x00b", "\ud800", "mem_1", "x" * 256, "\u2028"])
def test_invalid_member_names_are_refused(name: str) -> None:
    with pytest.raises(BadInput):
        check_member_name(name)


@pytest.mark.parametrize("name", ["ann", "ann@example.org", "Ünal", "王"])
def test_member_names_may_contain_any_letters(name: str) -> None:
    check_member_name(name)


@pytest.mark.parametrize("name", ["", "a\nb", "\x00", "x" * 101, "\ud800"])
def test_invalid_key_names_are_refused(name: str) -> None:
    with pytest.raises(BadInput):
        check_key_name(name)
