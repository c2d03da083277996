"""The store of runs on both databases."""

from datetime import UTC, datetime, timedelta

from msgspec.structs import replace

from teraflock.run import store
from teraflock.run.model import Checkpoint, Run, RunEstimate, RunId, RunProgress, RunSpec
from teraflock.run.states import RunPhase, RunWanted
from teraflock.storage.database import Database
from teraflock.tenant.model import MemberId, ProjectId

NOW = datetime(2026, 11, 16, 9, 0, tzinfo=UTC)
LATER = NOW + timedelta(minutes=15)
PROJECT = ProjectId("prj_1")


def run_of(number: int, **changes: object) -> Run:
    spec = RunSpec(
        command=("train", "10"), environment={"A": "ä"}, estimate=RunEstimate(hours=(1.0, 2.0, 3.0))
    )
    run = Run(
        id=RunId(f"run_{number}"), project_id=PROJECT, name=f"job-{number}", spec=spec, created_at=NOW,
        created_by=MemberId("mem_1"), since=NOW, due_at=NOW, progress=RunProgress(step=3, of=10, at=NOW),
    )  # fmt: skip
    return replace(run, **changes)


def test_run_is_read_as_it_was_written(database: Database) -> None:
    run = run_of(1, instances=("ins_1", "ins_2"), exit_code=3, outcome=RunPhase.QUEUED, outputs_bytes=7)
    database.write(lambda tx: store.insert(tx, run, {"TOKEN": "sealed"}))
    with database.read() as tx:
        assert store.find(tx, PROJECT, "job-1") == store.find(tx, PROJECT, "run_1") == run
        assert store.find(tx, ProjectId("prj_2"), "run_1") is None
        assert store.sealed_secrets(tx, run.id) == {"TOKEN": "sealed"}
        assert store.kept_bytes(tx, PROJECT) == 7
        assert list(store.specs_in_all_projects(tx)) == []
        assert store.is_due_in_all_projects(tx, NOW)


def test_pages_are_newest_first(database: Database) -> None:
    for number in (1, 2, 3):
        phase = RunPhase.DONE if number == 2 else RunPhase.QUEUED
        run = run_of(number, phase=phase, ended_at=NOW if number == 2 else None)
        database.write(lambda tx, run=run: store.insert(tx, run, {}))  # type: ignore[misc]
    with database.read() as tx:
        ids = [each.id for each in store.page(tx, PROJECT, before="", limit=2, active=False)]
        assert ids == ["run_3", "run_2"]
        rest = [each.id for each in store.page(tx, PROJECT, before="run_2", limit=2, active=False)]
        assert rest == ["run_1"]
        assert (
            len(store.page(tx, PROJECT, before="", limit=9, active=True))
            == store.count_active(tx, PROJECT)
            == 2
        )
        assert [each.id for each in store.over_before_in_all_projects(tx, LATER, limit=9)] == ["run_2"]


def test_one_worker_holds_a_run_and_requests_do_not_overwrite_it(database: Database) -> None:
    database.write(lambda tx: store.insert(tx, run_of(1), {}))

    def lease(worker: str, now: datetime) -> tuple[Run, ...]:
        return database.write(
            lambda tx: store.lease_in_all_projects(tx, worker, now, now + timedelta(minutes=15), limit=5)
        )

    (held,) = lease("first", NOW)
    assert lease("second", NOW) == ()
    database.write(lambda tx: store.set_wanted(tx, held.id, RunWanted.CANCELLED, NOW))
    moved = replace(held, phase=RunPhase.STARTING, instance_id="ins_1")
    assert not database.write(lambda tx: store.put_held(tx, moved, "second", release=False))
    assert database.write(lambda tx: store.put_held(tx, moved, "first", release=False))
    with database.read() as tx:
        seen = store.held_in_all_projects(tx, held.id, "first")
    assert seen is not None
    assert (seen.phase, seen.wanted) == (RunPhase.STARTING, RunWanted.CANCELLED)
    (taken,) = lease("second", NOW + timedelta(minutes=16))
    assert taken.phase == RunPhase.STARTING
    assert not database.write(lambda tx: store.put_held(tx, moved, "first", release=True)), (
        "it was taken over"
    )
    database.write(store.release_all_in_all_projects)
    assert len(lease("third", NOW)) == 1
    database.write(lambda tx: store.release(tx, held.id, "third"))
    assert len(lease("fourth", NOW)) == 1


def test_only_a_run_that_is_over_is_retried(database: Database) -> None:
    database.write(lambda tx: store.insert(tx, run_of(1), {"TOKEN": "sealed"}))
    again = run_of(1, attempt=2, wanted=RunWanted.DONE)
    assert not database.write(lambda tx: store.put_retried(tx, again))
    database.write(
        lambda tx: store.insert(tx, run_of(2, phase=RunPhase.FAILED, wanted=RunWanted.CANCELLED), {})
    )
    assert database.write(lambda tx: store.put_retried(tx, replace(again, id=RunId("run_2"))))
    with database.read() as tx:
        seen = store.find(tx, PROJECT, "run_2")
    assert seen is not None
    assert (seen.phase, seen.wanted, seen.attempt) == (RunPhase.QUEUED, RunWanted.DONE, 2)
    database.write(lambda tx: store.remove(tx, RunId("run_1")))
    with database.read() as tx:
        assert store.find(tx, PROJECT, "run_1") is None
        assert store.sealed_secrets(tx, RunId("run_1")) == {}


def test_checkpoint_replaces_one_of_the_same_name(database: Database) -> None:
    database.write(lambda tx: store.insert(tx, run_of(1, outputs_bytes=5), {}))
    first = Checkpoint(
        id="ckp_1", run_id=RunId("run_1"), name="state", mark="a", written_ns=(1 << 62), size_bytes=10, digest="d",
        pulled_at=NOW,
    )  # fmt: skip
    for kept in (
        first,
        replace(first, id="ckp_2", mark="b"),
        replace(first, id="ckp_3", name="other", written_ns=1),
    ):
        database.write(lambda tx, kept=kept: store.put_checkpoint(tx, kept))  # type: ignore[misc]
    with database.read() as tx:
        assert [each.id for each in store.checkpoints(tx, RunId("run_1"))] == ["ckp_3", "ckp_2"]
        assert store.kept_bytes(tx, PROJECT) == 25
    database.write(lambda tx: store.remove_checkpoint(tx, "ckp_3"))
    with database.read() as tx:
        assert [each.id for each in store.checkpoints(tx, RunId("run_1"))] == ["ckp_2"]
