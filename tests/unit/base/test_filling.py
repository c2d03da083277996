"""Values that repeat fields of another value."""

import msgspec
import pytest

from teraflock.base.filling import filled


class Host(msgspec.Struct):
    name: str
    kind: str
    cards: int


class HostShown(msgspec.Struct, kw_only=True):
    name: str
    kind: str
    cards: str
    note: str = ""


HOST = Host(name="gpu-1", kind="own", cards=2)


def test_fields_of_the_same_name_are_taken_and_others_win() -> None:
    shown = filled(HostShown, HOST, cards="2 cards", note="new")
    assert shown == HostShown(name="gpu-1", kind="own", cards="2 cards", note="new")


def test_a_field_that_neither_has_is_an_error_even_with_a_default() -> None:
    with pytest.raises(AttributeError, match="note"):
        filled(HostShown, HOST, cards="2 cards")


def test_an_unknown_field_is_an_error() -> None:
    with pytest.raises(TypeError, match="colour"):
        filled(HostShown, HOST, note="", colour="red")
