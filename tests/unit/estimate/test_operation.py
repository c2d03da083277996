"""Operations as the time model sees them: what slows a kernel is visible, however the operation was recorded."""

from math import prod

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lab.evidence import attributes, tensors

from teraflock.estimate.operation import Shaped, Work, work
from teraflock.estimate.speed import PEAKS_H200, curve_keys, measured, seconds_h200

IMAGE: Shaped = ("h", [8, 64, 56, 56], True)


@given(parts=st.lists(st.integers(1, 64), min_size=2, max_size=6))
def test_a_concatenation_is_the_same_for_a_list_and_its_summary(parts: list[int]) -> None:
    made: Shaped = ("h", [8, sum(parts), 28, 28], True)
    traced = work("cat", [("h", [8, each, 28, 28], True) for each in parts], [made], ())
    timed = work("cat", tensors(f"h*{len(parts)}:{8 * sum(parts) * 28 * 28} 1"), [made], ())
    assert (traced.dims, traced.dtype, traced.bytes) == (timed.dims, timed.dtype, timed.bytes)


def test_mixed_types_and_broadcasts_are_separate_kinds() -> None:
    plain = work("add", [IMAGE, IMAGE], [IMAGE], ())
    mixed = work("add", [IMAGE, ("f", [8, 64, 56, 56], True)], [IMAGE], ())
    spread = work("add", [IMAGE, ("h", [56], True)], [IMAGE], ())
    assert [(each.name, each.dtype) for each in (plain, mixed, spread)] == [
        ("add", "h"), ("add", "m"), ("add.broadcast", "h"),
    ]  # fmt: skip


def test_a_scalar_input_is_not_a_mixed_type_or_broadcast() -> None:
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


def test_narrow_values_take_less_arithmetic() -> None:
    keys, values = ("b", [2, 4, 512, 192], True), ("b", [2, 4, 512, 128], True)
    wide, narrow = (
        work("_scaled_dot_product_efficient_attention", [keys, keys, each], [each], [])
        for each in (keys, values)
    )
    assert narrow.flops == pytest.approx(wide.flops * (192 + 128) / (2 * 192))


def test_measured_attention_records_whether_it_is_causal() -> None:
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
def test_an_operation_on_empty_tensors_starts_no_kernel(name: str) -> None:
    """A sequence of length 0 in a trace must not cause a logarithm of 0."""
    made = work(name, [("f", [0, 4], True), ("f", [4, 8], True)], [("f", [0, 8], True)], [])
    assert not made.kernel


def test_a_convolution_in_the_channels_last_layout_is_a_family_of_its_own() -> None:
    """Only if the weights have it too: otherwise cuDNN changes the layout, as for other images."""
    last: Shaped = ("h", [8, 64, 56, 56], False)
    for is_contiguous, family in ((True, "convf:plain:k"), (False, "convf:plain:kn")):
        weight: Shaped = ("h", [64, 64, 3, 3], is_contiguous)
        assert work("convolution", [last, weight], [last], [1, 1, 1, 0, 1]).family == family


def test_a_depthwise_convolution_over_volumes_has_kernels_of_its_own() -> None:
    def made(*sides: int) -> Work:
        image: Shaped = ("h", [8, 96, *sides], True)
        weight: Shaped = ("h", [96, 1, *[3] * len(sides)], True)
        return work("convolution_backward", [image, image, weight], [image], [1, 1, 1, 0, 96, 1, 1, 0])

    volume, image = made(8, 28, 28), made(28, 224)
    assert (volume.family, image.family) == ("convb:depthwise:kv", "convb:depthwise:k")
    assert image.family in curve_keys(volume, "bf16")  # where none was measured
    assert seconds_h200(volume, measured(), "amp-fp16") > 2 * seconds_h200(image, measured(), "amp-fp16")


def test_rows_at_many_positions_are_counted() -> None:
    table: Shaped = ("f", [20_000, 32], True)
    few, many = (
        work("index", [table, ("l", [picks], True)], [("f", [picks, 32], True)], ())
        for picks in (100, 50_000)
    )
    assert (few.name, many.name) == ("index", "index.rows")
    assert many.dims == (32.0, 0.0, 50_000.0)


def test_positions_shown_for_all_columns_are_counted_once_for_each_row() -> None:
    def rows(*sides: int) -> Work:
        table: Shaped = ("f", [*sides[:-1], 20_000, 3], True)
        picked: Shaped = ("l", [*sides, 3], False)  # expanded: one position for three columns
        return work("gather", [table, picked], [("f", [*sides, 3], True)], ())

    assert rows(32, 8_192).dims[2] == rows(32 * 8_192).dims[2] == 32 * 8_192


def test_a_recurrent_layer_takes_longer_with_more_times_and_wider_states() -> None:
    def seconds(times: int, hidden: int, name: str = "_cudnn_rnn") -> float:
        made = work(name, [("f", [times, 64, 128], True)], [], [2, hidden, 2, 1, times])
        return seconds_h200(made, measured(), "fp32")

    assert seconds(200, 512) == pytest.approx(2 * seconds(100, 512))
    assert 1.5 < seconds(100, 1024) / seconds(100, 512) < 4  # a step has a least time
    assert seconds(100, 512, "_cudnn_rnn_backward") > seconds(100, 512)
    assert seconds(100, 8) == pytest.approx(2 * 100 * 5e-6, rel=0.01)
    assert seconds(100, 510) > 1.5 * seconds(100, 512)  # other kernels for sizes that are not aligned


def test_a_compiled_kernel_that_touches_no_tensor_is_no_kernel() -> None:
    """All that it makes is used within it. The estimate of such a trace ended with an error."""
    assert not work("fused", [], [], []).kernel


def test_boxes_are_decided_one_after_the_other() -> None:
    def seconds(boxes: int) -> float:
        made = work("nms", [("f", [boxes, 4], True), ("f", [boxes], True)], [("l", [boxes], True)], [])
        return seconds_h200(made, measured(), "fp32")

    assert seconds(8_662) == pytest.approx(3.2e-3, rel=0.05)
    assert seconds(2_000) < 1e-3


def test_the_words_of_a_measured_recurrent_layer_are_its_attributes() -> None:
    words = (
        "f[70,64,650] f*8:6765200 4 f[6765200] f[2,64,650] f[2,64,650] 2 650 0 2 False x True False () None"
    )
    assert attributes("_cudnn_rnn", words) == [2, 650, 2, 1, 70]


@pytest.mark.parametrize("name", ["native_batch_norm", "cudnn_batch_norm_backward", "batch_norm_eval"])
@given(sides=st.lists(st.integers(1, 64), min_size=0, max_size=3), channels=st.integers(2, 512))
def test_a_batch_norm_takes_as_long_over_sequences_and_volumes_as_over_images(
    name: str, sides: list[int], channels: int
) -> None:
    def made(shape: list[int]) -> Work:
        return work(name, [("f", shape, True), ("f", [channels], True)], [("f", shape, True)], ())

    image = made([4, channels, prod(sides), 1])
    assert (made([4, channels, *sides]).dims, made([4, channels, *sides]).bytes) == (image.dims, image.bytes)


@pytest.mark.parametrize("name", ["index_add_", "index_put_", "scatter_add_"])
@given(rows=st.integers(50_000, 1 << 24))
def test_rows_written_in_place_do_not_depend_on_the_size_of_the_table(name: str, rows: int) -> None:
    def made(rows: int) -> Work:
        table: Shaped = ("f", [rows, 8], True)
        picked: Shaped = ("l", [40_000], True)
        return work(name, [table, picked, ("f", [40_000, 8], True)], [table], ())

    assert (made(rows).dims, made(rows).bytes) == (made(50_000).dims, made(50_000).bytes)


def test_short_rows_take_a_least_time_for_each_position() -> None:
    def seconds(width: int) -> float:
        table: Shaped = ("f", [20_000, width], True)
        made = work("index", [table, ("l", [800_000], True)], [("f", [800_000, width], True)], ())
        return seconds_h200(made, measured(), "fp32")

    assert seconds(8) == pytest.approx(seconds(4)) == pytest.approx(5e-6 + 800_000 * 0.6e-9)
    assert seconds(4096) > 2 * seconds(8)


def test_pixels_of_an_image_do_not_matter_to_a_batch_norm_in_the_channels_last_layout() -> None:
    def made(side: int, batch: int, *, last: bool) -> Work:
        image: Shaped = ("h", [batch, 64, side, side], not last)
        return work("native_batch_norm_backward", [image, image], [image], ())

    small, large = made(16, 1024, last=True), made(64, 64, last=True)
    assert (small.name, small.dims, small.bytes) == (large.name, large.dims, large.bytes)
    assert small.name == "native_batch_norm_backward.last"
    assert seconds_h200(small, measured(), "amp-fp16") < 4 * small.bytes / PEAKS_H200.bandwidth
    assert made(16, 64, last=False).dims != made(64, 4, last=False).dims


@pytest.mark.parametrize("name", ["convolution", "convolution_backward"])
def test_a_convolution_in_the_channels_last_layout_copies_nothing_to_it(name: str) -> None:
    def seconds(*, last: bool, kind: str = "h") -> float:
        image: Shaped = (kind, [64, 160, 32, 32], not last)
        weight: Shaped = (kind, [160, 160, 3, 3], not last)
        inputs = [image, image, weight] if name.endswith("backward") else [image, weight]
        mask = [1, 1, 0] if name.endswith("backward") else []
        return seconds_h200(work(name, inputs, [image], [1, 1, 1, 0, 1, *mask]), measured(), "fp16")

    assert 0.6 <= seconds(last=True) / seconds(last=False) < 0.9


@pytest.mark.parametrize("name", ["leaky_relu", "elu_backward", "softplus", "xlogy"])
def test_an_operation_on_single_numbers_that_was_not_measured_takes_as_long_as_a_multiplication(
    name: str,
) -> None:
    def seconds(name: str) -> float:
        table: Shaped = ("f", [4096, 4096], True)
        return seconds_h200(work(name, [table], [table], ()), measured(), "fp32")

    assert seconds(name) == pytest.approx(seconds("mul"))


@pytest.mark.parametrize(
    ("name", "most"), [("mul", 1.45), ("mul.broadcast", 2.2), ("index_put", 10), ("leaky_relu", 1.45)]
)
@given(rows=st.integers(400_000, 1 << 22), width=st.integers(32, 1024))
def test_large_operations_take_a_multiple_of_their_bytes(
    name: str, most: float, rows: int, width: int
) -> None:
    table: Shaped = ("f", [rows, width], True)
    inputs: dict[str, list[Shaped]] = {
        "mul.broadcast": [table, ("f", [rows, 1], True)],
        "index_put": [table, ("l", [490], True), ("f", [490, width], True)],
    }
    made = work(name.split(".")[0], inputs.get(name, [table]), [table], ())
    assert made.name == name
    assert seconds_h200(made, measured(), "fp32") <= 1.001 * most * made.bytes / PEAKS_H200.bandwidth
