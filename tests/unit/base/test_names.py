"""Rules for names: projects have host name labels as names, members may have any name."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from teraflock.base.errors import BadInput
from teraflock.base.names import (
    check_key_name,
    check_label_key,
    check_member_name,
    check_name,
    check_place,
    check_variable,
)


@given(st.text(max_size=80))
def test_valid_names_are_host_name_labels(name: str) -> None:
    try:
        check_name(name, "a project")
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
    check_name(name, "a project")


@pytest.mark.parametrize(
    "name", ["", "A", "1a", "a-", "-a", "a_b", "a.b", "a/b", "é", "a" * 64, "a\n", "a\x00"]
)
def test_invalid_names_are_refused(name: str) -> None:
    with pytest.raises(BadInput):
        check_name(name, "a project")
    with pytest.raises(BadInput) as refused:
        check_name(name, "an instance")
    assert "host name" in refused.value.hint


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


@pytest.mark.parametrize("name", ["", "A", "a_b", "-a", "a-", "a" * 41, "a\n", "é"])
def test_invalid_places_are_refused(name: str) -> None:
    with pytest.raises(BadInput, match="is not a valid name for a site"):
        check_place(name, "a site")


@pytest.mark.parametrize("name", ["a", "1", "us-east-1", "a" * 40])
def test_valid_places_are_accepted(name: str) -> None:
    assert check_place(name, "a region") == name


@pytest.mark.parametrize(("name", "is_label", "is_variable"), [
    ("PATH", True, True), ("_X1", False, True), ("1A", True, False), ("team/x", True, False), ("a b", False, False),
    ("", False, False), ("a" * 64, False, True), ("a\n", False, False),
])  # fmt: skip
def test_keys_of_labels_and_names_of_variables(name: str, is_label: bool, is_variable: bool) -> None:
    for check, is_valid in ((check_label_key, is_label), (check_variable, is_variable)):
        try:
            assert check(name) == name
            assert is_valid
        except BadInput:
            assert not is_valid


def test_the_sentence_shows_the_name_without_control_characters() -> None:
    with pytest.raises(BadInput, match="`测试` is not a valid name for a network"):
        check_name("测试", "a network")
    with pytest.raises(BadInput) as refused:
        check_name("a\x1b[31m\u2028", "an instance")
    assert str(refused.value).isprintable()
