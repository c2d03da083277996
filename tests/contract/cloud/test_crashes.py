"""A server that dies before or after any call to a provider, at every cloud: nothing doubled, nothing leaked."""

from collections.abc import Mapping
from itertools import count
from pathlib import Path

import pytest
from tests.contract.cloud.direct import Direct
from tests.contract.cloud.ground import KINDS, MORE

from teraflock.drivers.clouds.calls import CloudCall, CloudReply
from teraflock.instance.driver import GRACE

ALL = sorted({**KINDS, **MORE})
CALLS_MAX = 60
"""More than any life of a machine needs."""


class Died(BaseException):
    """The process is gone: nothing catches it."""


def dies_at(cloud: Direct, number: int, when: str) -> None:
    """Die before the call with a number is sent, or after it was answered."""
    calls, send = count(), cloud.fake.send

    def sent(call: CloudCall, headers: Mapping[str, str], content: bytes | None) -> CloudReply:
        is_last = next(calls) == number
        if is_last and when == "before":
            raise Died
        reply = send(call, headers, content)
        if is_last:
            raise Died
        return reply

    cloud.fake.send = sent  # type: ignore[method-assign]


def life(cloud: Direct) -> None:
    made = cloud.create()
    cloud.ready(made)
    cloud.delete(made)


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("kind", ALL)
def test_a_server_that_dies_at_any_call_leaves_one_machine_or_none(
    kind: str, when: str, tmp_path: Path
) -> None:
    for number in range(CALLS_MAX):
        cloud = Direct(kind, tmp_path)
        dies_at(cloud, number, when)
        try:
            life(cloud)
        except Died:
            pass
        else:
            assert number > 3, "every call was walked"
            return
        cloud.site = cloud.open()
        cloud.wait(GRACE.total_seconds())
        ended = bool(cloud.fake.machines) and not cloud.fake.alive
        if not ended:
            life(cloud)
        assert cloud.fake.alive == [], number
        assert len(cloud.fake.machines) == 1, number
        for each in cloud.site.leftovers():
            cloud.site.remove_leftover(each)
        assert list(cloud.site.leftovers()) == [], number
    pytest.fail("a life has more calls than it should")


@pytest.mark.parametrize("kind", sorted(MORE))
def test_a_slow_boot_is_waited_for(kind: str, tmp_path: Path) -> None:
    cloud = Direct(kind, tmp_path)
    cloud.fake.boot_seconds = 600.0
    made = cloud.create()
    for _ in range(5):
        assert not cloud.site.ready(cloud.machine(remote_id=made.remote_id)).ready
        cloud.wait(115)
    cloud.wait(60)
    assert cloud.ready(made).ready
    assert len(cloud.fake.machines) == 1


@pytest.mark.parametrize("kind", ALL)
def test_an_orphan_is_shown_with_its_cost_and_not_deleted_by_itself(kind: str, tmp_path: Path) -> None:
    cloud = Direct(kind, tmp_path)
    cloud.site.refresh_types()
    cloud.create()
    calls = len(cloud.fake.calls)
    restored = cloud.open()  # an installation whose records are older than the machine
    restored.refresh_types()
    (orphan,) = restored.sightings()
    assert orphan.made is not None
    assert orphan.made.price_micros_per_hour == cloud.fake.alive[0].micros_per_hour
    restored.leftovers()
    assert not [call for call in cloud.fake.calls[calls:] if not call.startswith("read")]
    assert len(cloud.fake.alive) == 1
