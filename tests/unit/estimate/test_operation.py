"""What an operation of a trace looks like to the clock: what makes kernels slower shows, however it was recorded."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lab.evidence import attributes, tensors

from teraflock.estimate.operation import Shaped, work

IMAGE: Shaped = ("h", [8, 64, 56, 56], True)


@given(parts=st.lists(st.integers(1, 64), min_size=2, max_size=6))
def test_a_concatenation_is_the_same_as_a_list_of_tensors_and_as_their_count(parts: list[int]) -> None:
    made: Shaped = ("h", [8, sum(parts), 28, 28], True)
    traced = work("cat", [("h", [8, each, 28, 28], True) for each in parts], [made], ())
    timed = work("cat", tensors(f"h*{len(parts)}:{8 * sum(parts) * 28 * 28} 1"), [made], ())
    assert (traced.dims, traced.dtype, traced.bytes) == (timed.dims, timed.dtype, timed.bytes)


def test_inputs_of_two_types_or_two_shapes_take_kernels_of_their_own() -> None:
    plain = work("add", [IMAGE, IMAGE], [IMAGE], ())
    mixed = work("add", [IMAGE, ("f", [8, 64, 56, 56], True)], [IMAGE], ())
    spread = work("add", [IMAGE, ("h", [56], True)], [IMAGE], ())
    assert [(each.name, each.dtype) for each in (plain, mixed, spread)] == [
        ("add", "h"), ("add", "m"), ("add.broadcast", "h"),
    ]  # fmt: skip


def test_a_single_number_is_neither_a_type_nor_a_shape_of_its_own() -> None:
    scaled = work("mul", [IMAGE, ("f", [], True)], [IMAGE], ())
    assert (scaled.name, scaled.dtype) == ("mul", "h")


WORDS: Shaped = ("b", [4, 12, 1024, 64], True)


def test_causal_attention_is_half_the_arithmetic() -> None:
    whole, causal = (
        work("_scaled_dot_product_cudnn_attention", [WORDS] * 3, [WORDS], given) for given in ([], [1])
    )
    assert causal.flops == whole.flops / 2
    assert causal.dims != whole.dims


HEADS = "bT[4,12,1024,64]"


def test_what_was_measured_says_whether_attention_is_causal() -> None:
    texts = {
        f"{HEADS} {HEADS} {HEADS} None True x True scale=x": [1],
        f"{HEADS} {HEADS} {HEADS} None False x True scale=x": [1],
        f"{HEADS} {HEADS} {HEADS} None True x scale=x": [],
        f"{HEADS} {HEADS} {HEADS} None True": [],
        f"{HEADS} {HEADS} {HEADS} None False": [],
    }
    assert [attributes("_scaled_dot_product_cudnn_attention", each) for each in texts] == list(texts.values())
    back = f"{HEADS} {HEADS} f[4,12,1024] None x (True,True,True,False)"
    name = "_scaled_dot_product_efficient_attention_backward"
    assert [attributes(name, each) for each in (f"{back} True scale=x", back)] == [[1], []]


@pytest.mark.parametrize("name", ["mm", "add", "native_layer_norm"])
def test_an_operation_on_nothing_starts_no_kernel(name: str) -> None:
    """A sequence of length 0 in a trace must not end in a logarithm of 0."""
    made = work(name, [("f", [0, 4], True), ("f", [4, 8], True)], [("f", [0, 8], True)], [])
    assert not made.kernel
