"""What tenants may call things: names of projects are labels of host names, people are named as they are."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from teraflock.base.errors import BadInput
from teraflock.tenant.names import check_key_name, check_member_name, check_name


@given(st.text(max_size=80))
def test_names_that_pass_are_labels_of_host_names(name: str) -> None:
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
def test_good_names_pass(name: str) -> None:
    check_name("a project", name)


@pytest.mark.parametrize(
    "name", ["", "A", "1a", "a-", "-a", "a_b", "a.b", "a/b", "é", "a" * 64, "a\n", "a\x00"]
)
def test_bad_names_do_not(name: str) -> None:
    with pytest.raises(BadInput):
        check_name("a project", name)


@pytest.mark.parametrize("name", ["", " ", "a b", "a\n", "a\x00b", "\ud800", "mem_1", "x" * 256, "\u2028"])
def test_bad_names_of_members_do_not(name: str) -> None:
    with pytest.raises(BadInput):
        check_member_name(name)


@pytest.mark.parametrize("name", ["ann", "ann@example.org", "Ünal", "王"])
def test_people_are_named_as_they_are(name: str) -> None:
    check_member_name(name)


@pytest.mark.parametrize("name", ["", "a\nb", "\x00", "x" * 101, "\ud800"])
def test_bad_names_of_keys_do_not(name: str) -> None:
    with pytest.raises(BadInput):
        check_key_name(name)
