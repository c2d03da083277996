"""How long runs take to start is measured, and the next decisions use it."""

from functools import partial

from tests.faults.run_installation import RunInstallation
from tests.faults.test_runs import steps

from teraflock.run.sighting import store
from teraflock.run.sighting.model import MeasuredStart
from teraflock.run.sighting.rules import STARTS_KEPT


def seconds(installation: RunInstallation, place: str = "own/") -> list[int]:
    with installation.database.read() as tx:
        return [each.seconds for each in store.starts(tx, place)]


def test_each_start_on_a_new_machine_is_measured(installation: RunInstallation) -> None:
    run = installation.until(installation.ask("train", "60", "1", "5"), lambda seen: steps(seen) > 30)
    (first,) = seconds(installation)
    assert first >= 1
    installation.trouble.deleted_by_hand(run.instance_id)
    installation.finish(run)
    assert len(seconds(installation)) == 2


def test_start_that_makes_an_image_is_not_measured(installation: RunInstallation) -> None:
    """The next start finds the image, and takes much less."""
    installation.finish(installation.ask("train", "5", "1", "5", setup="true"))
    assert seconds(installation) == []


def test_only_the_newest_starts_of_a_place_are_kept(installation: RunInstallation) -> None:
    for number in range(STARTS_KEPT + 5):
        start = MeasuredStart(place="own/V100", at_us=number, seconds=number)
        installation.database.write(partial(store.put_start, start=start, kept=STARTS_KEPT))
    assert seconds(installation, "own/V100") == list(range(5, STARTS_KEPT + 5))
    assert seconds(installation) == []
