"""The temporary memory of convolutions."""

from math import prod

import pytest

from teraflock.estimate.operation import work_of
from teraflock.estimate.workspace import special_workspace_bytes, trial_bytes, workspace_bytes
from teraflock.workload.trace import Tensor, TracedOperation


@pytest.mark.parametrize("sides", [[4096], [64, 64], [16, 16, 16]])
def test_sequences_and_volumes_have_a_workspace_like_images(sides: list[int]) -> None:
    """They had none, so that the peak of a network of one-dimensional convolutions was too low."""
    sizes: list[int] = []

    def tensor(*shape: int) -> Tensor:
        sizes.extend(shape)
        return Tensor("f", list(range(len(sizes) - len(shape), len(sizes))))

    image, weight = tensor(8, 64, *sides), tensor(64, 64, *[3] * len(sides))
    operation = TracedOperation("convolution", [image, weight], [image], [1, 1, 1, 0, 1])
    numbers = 2 * 8 * 64 * prod(sides) + 2 * 64 * 64 * 3 ** len(sides)
    work = work_of(operation, sizes)
    assert workspace_bytes(operation, work, sizes, {"convf:plain:k:f": 0.5}) == 4 * numbers // 2


@pytest.mark.parametrize("name", ["_cudnn_rnn", "_cudnn_rnn_backward"])
def test_a_recurrent_layer_has_a_workspace_for_each_number_of_its_output(name: str) -> None:
    sizes = [100, 64, 128]
    operation = TracedOperation(name, [Tensor("f", [0, 1, 2])], [], [2, 512, 2, 2, 100])
    made = special_workspace_bytes(operation, sizes)
    assert made == pytest.approx(7.5 * 100 * 64 * 512 * 2 * 4)


def _tried(dtype: str, side: int, kernel: int, name: str = "convolution", **words: int) -> int:
    """Bytes for 7 images with 96 channels, of which 48 are made."""
    stride, groups = words.get("stride", 1), words.get("groups", 1)
    sizes = [7, 96, side, side, 48, 96, kernel, kernel, 48]
    image, weight = Tensor(dtype, [0, 1, 2, 3]), Tensor(dtype, [4, 5, 6, 7])
    made = Tensor(dtype, [0, 8, 2, 3])
    attributes = [stride, 1, 1, 0, groups]
    if name == "convolution":
        return trial_bytes(TracedOperation(name, [image, weight], [made], attributes), sizes)
    return trial_bytes(TracedOperation(name, [made, image, weight], [image], [*attributes, 1, 1, 0]), sizes)


def test_fourier_transforms_are_tried_in_float32() -> None:
    """703 MB were measured for the first, where a plain algorithm needs 51 MB."""
    assert _tried("f", 112, 5) == pytest.approx(703e6, rel=0.01)
    assert _tried("h", 112, 5) == _tried("f", 112, 5, stride=2) == _tried("f", 112, 5, groups=3) == 0
    assert _tried("f", 253, 5) == 0  # 257 numbers need a transform of 512


def test_only_the_gradient_of_a_weight_of_one_number_is_tried_by_fourier_transforms() -> None:
    assert _tried("f", 112, 1) == _tried("f", 112, 5, "convolution_backward") == 0
    assert _tried("f", 112, 1, "convolution_backward") == 2 * 48 * 96 * 128 * 65 * 8
