"""The temporary memory of convolutions."""

from math import prod

import pytest

from teraflock.estimate.operation import work_of
from teraflock.estimate.workspace import workspace_bytes
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
