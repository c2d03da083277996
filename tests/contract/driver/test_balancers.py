"""Balancers on every engine that can run them: exactly the wanted ones run, however often they are requested."""

import pytest
from tests.contract.driver.grounds import Ground, network

from teraflock.instance.driver import Capability
from teraflock.network.balancer.model import BackendSpec, BalancerId, BalancerProtocol, BalancerSpec
from teraflock.network.rules import subnet


def spec(number: int, ground: Ground, *backends: str) -> BalancerSpec:
    home = network(9)
    return BalancerSpec(
        id=BalancerId(f"lbr_{number:016d}"),
        name=f"front-{number}",
        project_id=home.project_id,
        network_number=home.number,
        network_key=home.key,
        domain="nine.internal",
        host=ground.host,
        address=str(subnet(home.number)[200 + number]),
        protocol=BalancerProtocol.TCP,
        port=80,
        target_port=8080,
        health_check="tcp",
        check_seconds=2,
        backends=tuple(BackendSpec(f"ins_{each}", str(subnet(home.number)[100])) for each in backends),
    )


def test_exactly_the_wanted_balancers_run(ground: Ground) -> None:
    if not ground.can(Capability.BALANCER):
        ground.driver.balance([])
        assert list(ground.driver.balancers()) == []
        pytest.skip("this engine runs no balancers")
    first, second = spec(1, ground, "none"), spec(2, ground)
    try:
        for wanted in ([], [first], [first], [first, second], [second], [], [first]):
            assert running_after(ground, wanted) == {each.id for each in wanted}
        (seen,) = ground.driver.balancers()
        assert [each.instance_id for each in seen.backends] == ["ins_none"]
    finally:
        ground.driver.balance([])
        ground.driver.retire(network(9))


def running_after(ground: Ground, wanted: list[BalancerSpec]) -> set[str]:
    """An engine may pause between changes."""
    running: set[str] = set()
    for _ in range(50):
        ground.driver.balance(wanted)
        running = {each.id for each in ground.driver.balancers()}
        if running == {each.id for each in wanted}:
            break
        ground.around.pass_time(0.2)
    return running
