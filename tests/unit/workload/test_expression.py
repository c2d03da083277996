"""Sizes worked out in two goes, some symbols first, are those worked out in one."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from teraflock.base.errors import BadInput
from teraflock.workload.expression import Expression, evaluate_all, folded_all

LEAVES = st.one_of(st.integers(0, 50), st.sampled_from(["batch", "seq", "image"]))
EXPRESSIONS: st.SearchStrategy[Any] = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=4).flatmap(
            lambda operands: st.sampled_from(["*", "+", "max", "min"]).map(lambda sign: [sign, *operands])
        ),
        st.tuples(st.sampled_from(["//", "%"]), inner, inner).map(list),
        st.tuples(st.just("**"), inner, st.integers(0, 3)).map(list),
    ),
    max_leaves=12,
)


def tried(
    expressions: list[Expression], symbols: dict[str, int], before: dict[str, int] | None = None
) -> list[int] | str:
    try:
        return evaluate_all(folded_all(expressions, before) if before else expressions, symbols)
    except BadInput as error:
        return error.sentence


@given(st.lists(EXPRESSIONS, max_size=4), st.integers(0, 9), st.integers(0, 9), st.integers(0, 9))
def test_folding_first_changes_no_size(
    expressions: list[Expression], batch: int, seq: int, image: int
) -> None:
    symbols = {"batch": batch, "seq": seq, "image": image}
    fixed = {"seq": seq, "image": image}
    assert tried(expressions, symbols, before=fixed) == tried(expressions, symbols)


def test_what_holds_no_batch_is_a_number_once_folded() -> None:
    assert folded_all([["*", "image", "image", 3], ["*", "batch", "image", 3]], {"image": 7}) == [
        147,
        ["*", "batch", 21],
    ]


@pytest.mark.parametrize("wrong", [[], ["?", 1], ["//", 1, 0], ["**", 2, 99], {"a": 1}])
def test_what_cannot_be_read_is_refused_when_folded_too(wrong: Any) -> None:
    with pytest.raises(BadInput):
        folded_all([wrong], {})
