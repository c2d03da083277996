"""Which machines are rented in place of an own server, against all of them."""

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from teraflock.catalog.providers import is_market
from teraflock.plan.buy_or_rent import MachineRent, cheapest_rent


def machines(random: Random) -> list[MachineRent]:
    found = [
        MachineRent(
            provider=random.choice(("aws", "vast", "lambda")),
            instance_type=f"type-{i}",
            gpu="V100-SXM2",
            gpu_count=random.choice((1, 2, 3, 4, 8, 16)),
            micros_per_month=random.choice((0, 10**9, random.randrange(1, 10**10))),
            as_of="2026-08-22",
        )
        for i in range(random.randrange(8))
    ]
    return sorted(found, key=lambda each: each.micros_per_month / each.gpu_count)


@settings(max_examples=300, deadline=None)
@given(seed=st.integers(0, 2**32), gpus=st.integers(1, 40))
def test_the_cheapest_whole_machines_are_found(seed: int, gpus: int) -> None:
    offered = machines(Random(seed))
    needed = {each.instance_type: -(-gpus // each.gpu_count) for each in offered}
    costs = [
        needed[each.instance_type] * each.micros_per_month
        for each in offered
        if needed[each.instance_type] == 1 or not is_market(each.provider)
    ]
    rent = cheapest_rent(gpus, "on-demand", offered)
    assert (rent is None) == (not costs)
    if rent:
        assert rent.micros_per_month == min(costs)
        assert rent.machines * rent.gpu_count >= gpus
        assert rent.machines == 1 or not is_market(rent.provider)


def test_a_machine_with_more_gpus_is_paid_whole() -> None:
    large = MachineRent(
        provider="lambda",
        instance_type="eight",
        gpu="V100-SXM2",
        gpu_count=8,
        micros_per_month=8_000_000,
        as_of="2022-07",
    )
    rent = cheapest_rent(2, "monthly", [large])
    assert rent is not None
    assert (rent.micros_per_month, rent.machines, rent.flat) == (8_000_000, 1, True)
