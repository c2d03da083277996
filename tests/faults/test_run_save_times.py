"""How long saves take is measured, and the command is told how often to save accordingly."""

import pytest
from tests.faults.run_installation import RunInstallation
from tests.faults.test_bids import BOOK
from tests.faults.test_gangs import CARD, programs
from tests.faults.test_runs import steps
from tests.unit.bill.world import RATES

from teraflock.api.convert.run import run_cost, run_details
from teraflock.bill.service import BillService
from teraflock.drivers.simulated.runs import SAVE_NS
from teraflock.run.checkpoint import LOSS_HOURS, LOSS_HOURS_STEADY, SAVE_SECONDS, checkpoint_every_seconds
from teraflock.run.model import Checkpoint, Run
from teraflock.run.nodes import nodes_of
from teraflock.words.run import facts

UNKNOWN = checkpoint_every_seconds(LOSS_HOURS_STEADY, SAVE_SECONDS)
MEASURED = checkpoint_every_seconds(LOSS_HOURS_STEADY, SAVE_NS / 1e9)


def told(installation: RunInstallation, run: Run) -> set[int]:
    """What the command reads, on all nodes."""
    return {int(each.environment["TERA_CHECKPOINT_EVERY"]) for each in programs(installation, run)}


def checkpoints(installation: RunInstallation, run: Run) -> tuple[Checkpoint, ...]:
    return installation.runs.checkpoints(installation.tenant.project.id, run.id)


@pytest.mark.parametrize("nodes", [1, 2])
def test_restored_checkpoints_are_not_copied_back(installation: RunInstallation, nodes: int) -> None:
    run = installation.ask("train", "80", "1", "40", nodes=nodes, shape=CARD)
    run = installation.until(run, lambda seen: len(checkpoints(installation, seen)) == 1)
    (saved,) = checkpoints(installation, run)
    installation.trouble.deleted_by_hand(run.instance_id)
    run = installation.finish(run)
    assert run.attempt == 2
    assert checkpoints(installation, run)[0].id == saved.id
    assert len(checkpoints(installation, run)) == 2


@pytest.mark.parametrize("nodes", [1, 2])
def test_next_attempt_and_next_run_are_told_by_what_was_measured(
    installation: RunInstallation, nodes: int
) -> None:
    run = installation.ask("train", "80", "1", "5", nodes=nodes, shape=CARD)
    run = installation.until(run, lambda seen: steps(seen) > 41)
    assert (told(installation, run), run.save_every_seconds) == ({UNKNOWN}, UNKNOWN)
    installation.trouble.deleted_by_hand(nodes_of(run)[-1].instance_id)
    run = installation.until(run, lambda seen: seen.attempt == 2 and steps(seen) > 60)
    assert (told(installation, run), run.save_every_seconds) == ({MEASURED}, MEASURED)
    kept = checkpoints(installation, run)
    details = run_details(run, kept, run_cost(()), installation.clock.now(), simulated=True)
    assert dict(facts(details, installation.clock.now()))["saving"] == "3 s measured, every 20m47s advised"
    installation.finish(run)
    again = installation.ask("train", "80", "1", "5", nodes=nodes, shape=CARD, name="again")
    again = installation.until(again, lambda seen: steps(seen) > 1)
    assert told(installation, again) == {MEASURED}, "the same script"
    installation.finish(again)
    other = installation.ask("train", "90", "1", "5", nodes=nodes, shape=CARD, name="other")
    assert told(installation, installation.until(other, lambda seen: steps(seen) > 1)) == {UNKNOWN}


def test_run_that_bids_is_told_to_save_more_often(installation: RunInstallation) -> None:
    """A higher bid takes its card, as others take spot machines back."""
    bills = BillService(installation.database, installation.clock, RATES, installation.random_bytes)
    bills.prices.take(BOOK, name="prices.yaml", member="mem")
    run = installation.ask("train", "9", "1", "5", shape=CARD, mode="bid", bid_micros_per_hour=2_000_000)
    run = installation.until(run, lambda seen: steps(seen) > 1)
    assert told(installation, run) == {checkpoint_every_seconds(LOSS_HOURS["bid"])}
    assert run.save_every_seconds is not None
    assert run.save_every_seconds < UNKNOWN
