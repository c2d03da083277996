"""The grid of a sweep, and the command of each of its runs."""

import pytest

from teraflock.base.errors import BadInput
from teraflock.run.sweep import RUNS_MAX, combinations, command_with


def test_grid_has_every_combination_once() -> None:
    found = combinations({"lr": ("1", "2"), "batch": ("32", "64")})
    assert found == [
        {"lr": "1", "batch": "32"},
        {"lr": "1", "batch": "64"},
        {"lr": "2", "batch": "32"},
        {"lr": "2", "batch": "64"},
    ]


def test_grid_that_is_empty_or_too_large_is_refused() -> None:
    many = tuple(map(str, range(RUNS_MAX)))
    assert len(combinations({"a": many})) == RUNS_MAX
    for grid in ({}, {"a": ()}, {"a": ("1", "1")}, {"a": many, "b": ("1", "2")}):
        with pytest.raises(BadInput):
            combinations(grid)


def test_values_replace_marks_or_are_added() -> None:
    assert command_with(("train", "--lr={lr}", "{lr}x"), {"lr": "1e-3"}) == ("train", "--lr=1e-3", "1e-3x")
    assert command_with(("train",), {"lr": "$(id)"}) == ("train", "--lr", "$(id)")


def test_values_are_not_expanded_again() -> None:
    assert command_with(("{a}", "{b}"), {"a": "{b}{b}", "b": "{a}"}) == ("{b}{b}", "{a}")
    assert command_with(("{a}",), {"a": "{b}", "b": "1"}) == ("{b}", "--b", "1")
    levels = {name: f"{{{after}}}" * 60 for name, after in zip("abcdefghi", "bcdefghij", strict=True)}
    assert len("".join(command_with(("{a}",), {**levels, "j": "x"}))) < 5000


def test_marks_cannot_make_a_command_large() -> None:
    with pytest.raises(BadInput):
        command_with(("{a}" * 1000,), {"a": "x" * 200})
