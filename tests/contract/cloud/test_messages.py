"""Lost messages, refusals, late listings and foreign host keys at every cloud: nothing doubled, leaked or trusted."""

from collections.abc import Callable, Mapping
from datetime import datetime
from itertools import count
from pathlib import Path
from typing import TypeVar

import pytest
from tests.contract.cloud.direct import Direct
from tests.contract.cloud.ground import KINDS, MORE

from teraflock.base.errors import Unavailable
from teraflock.drivers.clouds.calls import CloudCall, CloudReply
from teraflock.instance.driver import GRACE, Handle, Made
from teraflock.instance.ending import StillEnding
from teraflock.instance.engine_errors import EngineBusy, EngineDown

ALL = sorted({**KINDS, **MORE})
CALLS_MAX = 60
"""More than any life of a machine needs."""
TRIES_MAX = 300
T = TypeVar("T")


@pytest.fixture(params=ALL)
def cloud(request: pytest.FixtureRequest, tmp_path: Path) -> Direct:
    return Direct(request.param, tmp_path)


def repeated(cloud: Direct, act: Callable[[], T]) -> T:
    """Repeat a call as the loops do: whatever says that it may work later is tried again."""
    for _ in range(TRIES_MAX):
        try:
            return act()
        except (Unavailable, StillEnding) as error:
            words = error.sentence
            cloud.wait(5)
    pytest.fail(f"it never succeeds: {words}")


def asks(cloud: Direct) -> Callable[[], Made]:
    """A launch whose token is noted before it is first asked for, and again after the grace time."""
    asked_at: list[datetime] = []

    def act() -> Made:
        now = cloud.clock.now()
        before = asked_at[-1] if asked_at else None
        if before is None or now - before >= GRACE:
            asked_at.append(now)
        return cloud.create(asked_at=before)

    return act


def life(cloud: Direct) -> None:
    made = repeated(cloud, asks(cloud))
    repeated(cloud, lambda: cloud.ready(made))
    repeated(cloud, lambda: cloud.site.delete(Handle(cloud.machine().id, "", made.remote_id)))


def swept(cloud: Direct) -> None:
    for each in cloud.site.leftovers():
        cloud.site.remove_leftover(each)


def check_over(cloud: Direct, words: object = "") -> None:
    assert (cloud.fake.alive, len(cloud.fake.machines)) == ([], 1), words
    repeated(cloud, lambda: swept(cloud))
    assert repeated(cloud, lambda: list(cloud.site.leftovers())) == [], words


def loses(cloud: Direct, number: int, when: str) -> list[str]:
    """Lose the message with a number, before the provider has read it or after it has answered."""
    calls, send, lost = count(), cloud.fake.send, list[str]()

    def sent(call: CloudCall, headers: Mapping[str, str], content: bytes | None) -> CloudReply:
        is_lost = next(calls) == number
        if is_lost:
            lost.append(f"{call.method} {call.path}")
        if is_lost and when == "request":
            raise EngineDown("The request was lost")
        reply = send(call, headers, content)
        if is_lost:
            raise EngineDown("The answer was lost")
        return reply

    cloud.fake.send = sent  # type: ignore[method-assign]
    return lost


@pytest.mark.parametrize("late", [0.0, 30.0])
@pytest.mark.parametrize("when", ["request", "answer"])
@pytest.mark.parametrize("kind", ALL)
def test_a_message_lost_at_any_call_doubles_and_leaks_nothing(
    kind: str, when: str, late: float, tmp_path: Path
) -> None:
    for number in range(CALLS_MAX):
        cloud = Direct(kind, tmp_path)
        cloud.fake.listing_seconds = late
        lost = loses(cloud, number, when)
        life(cloud)
        check_over(cloud, lost)
        if not lost:
            assert number > 3, "every call was walked"
            return
    pytest.fail("a life has more calls than it should")


def test_a_launch_is_not_repeated_before_a_late_listing_could_show_it(cloud: Direct) -> None:
    cloud.fake.listing_seconds = 40.0
    cloud.fake.lost_answers = ["launch"]
    with pytest.raises(EngineDown):
        cloud.create()
    asked_at = cloud.clock.now()
    for _ in range(3):
        cloud.wait(10)
        with pytest.raises(EngineBusy, match="may have launched"):
            cloud.open().create(cloud.machine(asked_at=asked_at))
    cloud.wait(15)
    assert cloud.create(asked_at=asked_at).remote_id
    assert len(cloud.fake.machines) == 1


def test_a_storm_of_429_delays_and_ends_nothing(cloud: Direct) -> None:
    for act in (asks(cloud), cloud.site.sightings, cloud.site.refresh_types):
        cloud.fake.refusals = 9
        repeated(cloud, act)
    (machine,) = cloud.fake.alive
    cloud.fake.refusals = 9
    repeated(cloud, lambda: cloud.site.delete(cloud.machine().handle))
    assert machine.ended is not None
    check_over(cloud)


def test_another_host_key_is_never_trusted(cloud: Direct) -> None:
    if not cloud.site.cloud.injects_host_key:
        pytest.skip("this cloud has no way to give a machine its host key")
    made = cloud.create(given={"command": ("true",), "user_data": "#!/bin/sh\n", "recipe": "pytorch"})
    cloud.fake.alive[0].host_key = "ssh-ed25519 AAAAsomebodyelse"
    machine = cloud.machine(remote_id=made.remote_id, given={"recipe": "pytorch"})
    for _ in range(4):
        cloud.wait(30)
        assert not cloud.site.ready(machine).ready
    with pytest.raises(EngineDown):
        cloud.site.run(machine.handle, ("cat",), stdin=b"secret", seconds_max=5)
    assert cloud.link.ran == [], "nothing was sent to the other machine"
