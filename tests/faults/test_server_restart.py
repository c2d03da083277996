"""A server with its real loops is stopped and started again: it checks its guests before anything else."""

import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from tests.api.asking import SETTINGS, Asking

from teraflock.app.settings import Place
from teraflock.app.wiring import Cloud
from teraflock.base.clock import microseconds
from teraflock.drivers.simulated.engine import SimulatedEngine
from teraflock.drivers.simulated.trouble import Trouble

SECONDS_MAX = 60.0


def wait_until(holds: Callable[[], object]) -> None:
    end = time.monotonic() + SECONDS_MAX
    while not holds():
        assert time.monotonic() < end, "the condition was never met"
        time.sleep(0.05)


def started(home: Path) -> tuple[Cloud, Asking]:
    cloud = Cloud(Place(home), msgspec.structs.replace(SETTINGS, loops=True))
    return cloud, Asking(cloud)


def state(asking: Asking, key: str) -> str:
    answer = asking.ask("GET", "/v1/instances/web", key)
    return str(answer.json["state"]) if answer.status == 200 else ""


@pytest.mark.parametrize("stops", [True, False], ids=["guest stopped too", "guest kept running"])
def test_restart_charges_only_guests_that_kept_running(tmp_path: Path, stops: bool) -> None:
    cloud, asking = started(tmp_path)
    key = cloud.at.operator_key.read_text().strip()
    cloud.start()
    wait_until(lambda: asking.ask("GET", "/v1/hosts", key).json["items"])
    asking.ask("POST", "/v1/images", key, body={"name": "base", "recipe": "base"})
    wait_until(lambda: asking.ask("GET", "/v1/images/base", key).json["state"] == "ready")
    made = asking.ask("POST", "/v1/instances", key, body={"name": "web", "shape": {"vcpus": 1}})
    id = made.json["items"][0]["id"]
    wait_until(lambda: state(asking, key) == "running")
    asking.close()
    cloud.stop()
    down_us = microseconds(cloud.clock.now())

    cloud, asking = started(tmp_path)
    (engine,) = cloud.engines
    assert isinstance(engine, SimulatedEngine)
    if stops:
        Trouble(engine.world).stopped_by_hand(id)
    up_us = microseconds(cloud.clock.now())
    cloud.start()
    bills = cloud.services.nouns.bills
    try:
        wait_until(lambda: cloud.loops.turns.get("drift", 0) >= 2)
        wait_until(lambda: state(asking, key) == "running")
        with cloud.database.read() as tx:
            rows = tx.all(
                "SELECT details FROM event WHERE subject = :id AND kind = 'instance.moved' ORDER BY id", id=id
            )
            ran = tx.all("SELECT at_us FROM ran_unwatched WHERE instance_id = :id", id=id)
        lost = [said for (text,) in rows if (said := msgspec.json.decode(text))["to"] == "away"]
        if stops:
            (away,) = lost
            assert away["last_seen_us"] <= down_us
            assert not ran
        else:
            assert lost == []
            ((at_us,),) = ran
            assert at_us >= up_us
        assert bills.verify().is_sound
    finally:
        asking.close()
        cloud.stop()
