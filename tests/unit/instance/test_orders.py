"""Every order is accepted or refused with one sentence."""

import re
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from teraflock.base.errors import BadInput
from teraflock.base.limits import NAME
from teraflock.base.quantities import GIB
from teraflock.base.size import Size
from teraflock.fleet.model import Gpu, GpuKind, Host, HostId, HostState
from teraflock.instance.model import Access
from teraflock.instance.orders import Order, ShapeWish, bid_and_limit, changed_shape, check, shape_of

NOW = datetime(2026, 11, 15, tzinfo=UTC)


def host(number: int, card: str, count: int) -> Host:
    return Host(
        id=HostId(f"hst_{number}"),
        site="site",
        name=f"host-{number}",
        state=HostState.READY,
        address="198.18.0.1",
        vcpus=64,
        ram_bytes=257 * GIB,
        disk_bytes=2048 * GIB,
        simulated=True,
        registered_at=NOW,
        seen_at=NOW,
        gpus=tuple(
            Gpu(
                slot=f"0000:{slot:02x}:00.0",
                kind=GpuKind.PHYSICAL,
                gpu=card,
                name=card,
                memory_bytes=16 * GIB,
                healthy=True,
                instance_id=None,
            )
            for slot in range(count)
        ),
    )


HOSTS = (host(1, "V100-SXM2", 8), host(2, "V100-SXM2", 4), host(3, "T4", 4), host(4, "", 0))


@given(
    st.builds(
        Order,
        name=st.none() | st.text(max_size=70) | st.from_regex(NAME, fullmatch=True),
        image=st.text(max_size=20),
        access=st.sampled_from(Access),
        command=st.lists(st.text(max_size=20), max_size=3).map(tuple),
        user_data=st.text(max_size=40),
        authorized_keys=st.lists(st.text(max_size=20), max_size=2).map(tuple),
        labels=st.dictionaries(st.text(max_size=70), st.text(max_size=10), max_size=2),
        environment=st.dictionaries(st.text(max_size=10), st.text(max_size=10), max_size=2),
        instances=st.integers(-2, 120),
    )
)
def test_order_is_accepted_or_refused_with_one_sentence(order: Order) -> None:
    try:
        check(order)
    except BadInput:
        return
    assert order.name is None or re.fullmatch(NAME, order.name)
    assert all("\0" not in word for word in (*order.command, order.user_data))


@pytest.mark.parametrize("name", ["a/b", "..", "-a", "a-", "A", "ä", "a_b", "", "a" * 64, "a b", "1a", "a\n"])
def test_invalid_names_are_refused(name: str) -> None:
    with pytest.raises(BadInput, match="is not a valid name"):
        check(Order(name=name))


def test_user_data_is_limited() -> None:
    with pytest.raises(BadInput, match="64 KB"):
        check(Order(user_data="#!" + "x" * 65_535))
    check(Order(user_data="#!" + "x" * 65_534))


def test_processors_and_memory_are_proportional_to_cards() -> None:
    one, four = (shape_of(ShapeWish(gpu="V100", gpus=count), HOSTS) for count in (1, 4))
    assert (one.gpu, one.gpus, one.vcpus, one.ram_bytes) == ("V100-SXM2", 1, 8, 32 * GIB)
    assert (four.vcpus, four.ram_bytes) == (32, 128 * GIB)


def test_default_shape_without_gpu_is_small() -> None:
    assert shape_of(ShapeWish(), HOSTS) == Size(vcpus=1, ram_bytes=GIB, disk_bytes=8 * GIB)
    assert shape_of(ShapeWish(vcpus=4), HOSTS).ram_bytes == 4 * GIB


def test_missing_gpu_model_lists_the_available_ones() -> None:
    with pytest.raises(BadInput, match="No host has the GPU model `A100`") as caught:
        shape_of(ShapeWish(gpu="A100"), HOSTS)
    assert "`T4`" in caught.value.hint
    assert "`V100-SXM2`" in caught.value.hint


def test_more_gpus_than_any_host_has_are_refused() -> None:
    with pytest.raises(BadInput, match="No host has 16 GPUs of the model `V100-SXM2`") as caught:
        shape_of(ShapeWish(gpu="V100", gpus=16), HOSTS)
    assert "8" in caught.value.hint


def test_contradicting_sizes_are_refused() -> None:
    with pytest.raises(BadInput, match="The shape `cpu-1` already sets the GPUs"):
        shape_of(ShapeWish(name="cpu-1", gpu="V100"), HOSTS)
    with pytest.raises(BadInput, match="No GPU model is set for 2 GPUs"):
        shape_of(ShapeWish(gpus=2), HOSTS)
    with pytest.raises(BadInput, match="Unknown shape"):
        shape_of(ShapeWish(name="cpu-3"), HOSTS)


wishes = st.builds(
    ShapeWish,
    gpus=st.none() | st.integers(0, 8),
    vcpus=st.none() | st.integers(1, 64),
    ram_bytes=st.none() | st.integers(1, 64).map(lambda count: count * GIB),
    disk_bytes=st.none() | st.integers(1, 64).map(lambda count: count * GIB),
)


@given(wishes)
def test_changed_shape_keeps_what_is_not_named(wish: ShapeWish) -> None:
    before = Size(gpu="V100-SXM2", gpus=2, vcpus=4, ram_bytes=8 * GIB, disk_bytes=8 * GIB)
    after = changed_shape(before, wish, HOSTS)
    assert after.vcpus == (wish.vcpus or 4)
    assert after.gpus == (2 if wish.gpus is None else wish.gpus)
    assert after.gpu == ("V100-SXM2" if after.gpus else "")
    assert after.disk_bytes == (wish.disk_bytes or 8 * GIB)


@pytest.mark.parametrize(
    ("mode", "rents", "bid", "limit", "expected"),
    [
        ("spot", True, 5, None, (None, 5)),
        ("spot", True, 5, 3, (None, 3)),
        ("spot", True, 3, 5, (None, 3)),
        ("spot", True, None, 5, (None, 5)),
        ("spot", False, 5, None, (5, None)),
        ("bid", True, 5, 9, (5, 9)),
    ],
)
def test_a_bid_for_a_rented_spot_machine_is_its_highest_price(
    mode: str, rents: bool, bid: int | None, limit: int | None, expected: tuple[int | None, int | None]
) -> None:
    assert bid_and_limit(mode, rents=rents, bid=bid, limit=limit) == expected
