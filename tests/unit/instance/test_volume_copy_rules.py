"""Which volumes are copied now, and which copies are removed."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from teraflock.instance.copy.rules import STALE_AFTER
from teraflock.instance.copy.states import CopyState
from teraflock.instance.volume.model import Volume, VolumeCopy, VolumeId, VolumeSeen
from teraflock.instance.volume.rules import VolumeAct, best_copy, copy_is_due, next_act, obsolete_copies
from teraflock.tenant.model import ProjectId

NOW = datetime(2026, 11, 16, tzinfo=UTC)
EVERY = timedelta(hours=1)
SECONDS = st.integers(0, 7200)

volumes = st.builds(
    lambda disk, host, **flags: Volume(
        id=VolumeId("vol"), project_id=ProjectId("prj"), name="disk", size_bytes=2, created_at=NOW, created_by="",
        disk_id=disk, host_id=host, **flags,
    ),
    disk=st.sampled_from(["vol", "c0", "c1"]),
    host=st.sampled_from(["h0", "h1"]),
    made_bytes=st.sampled_from([0, 1, 2]),
    copied=st.booleans(),
    deleting=st.booleans(),
    restore_from=st.sampled_from(["", "vsn"]),
)  # fmt: skip


@st.composite
def _copies(draw: st.DrawFn) -> list[VolumeCopy]:
    return [
        VolumeCopy(
            id=f"c{number}",
            volume_id="vol",
            source_id=draw(st.sampled_from(["vol", "c0", "c1"])),
            host_id=draw(st.sampled_from(["h0", "h1", "h2"])),
            site="",
            state=draw(st.sampled_from([CopyState.MAKING, CopyState.READY, CopyState.REMOVING])),
            disk_bytes=1,
            made_at=NOW - timedelta(seconds=draw(SECONDS)),
            touched_at=NOW - timedelta(seconds=draw(SECONDS)),
        )
        for number in range(2, 2 + draw(st.integers(0, 4)))
    ]


@given(volumes, _copies())
def test_the_best_copy_is_complete_newest_and_elsewhere(volume: Volume, copies: list[VolumeCopy]) -> None:
    fit = [
        each
        for each in copies
        if (each.state, each.source_id) == (CopyState.READY, volume.disk_id)
        and each.host_id != volume.host_id
    ]
    best = best_copy(volume, copies)
    assert (best is None) == (fit == [])
    if best is not None:
        assert best in fit
        assert best.made_at == max(each.made_at for each in fit)


@given(volumes, _copies())
def test_a_volume_is_copied_when_its_copy_is_old(volume: Volume, copies: list[VolumeCopy]) -> None:
    best = best_copy(volume, copies)
    may = volume.copied and volume.made_bytes > 0 and not (volume.deleting or volume.restore_from)
    is_made = any(each.state == CopyState.MAKING for each in copies)
    is_old = best is None or best.made_at <= NOW - EVERY
    assert copy_is_due(volume, copies, EVERY, NOW) == (may and not is_made and is_old)


@given(volumes, _copies(), st.booleans())
def test_all_but_the_best_copy_go(volume: Volume, copies: list[VolumeCopy], exists: bool) -> None:
    gone = obsolete_copies(copies, {"vol": volume} if exists else {}, NOW)
    left = [each for each in copies if each not in gone]
    at_work = [each for each in left if each.state == CopyState.MAKING]
    assert all(NOW - each.touched_at < STALE_AFTER for each in at_work)
    assert all(each.state != CopyState.REMOVING for each in gone), "that is decided already"
    needed = exists and volume.copied and not volume.deleting
    assert [each for each in left if each.state == CopyState.READY] == (
        [best for best in [best_copy(volume, copies)] if best] if needed else []
    )


@given(volumes, st.booleans())
def test_a_disk_that_is_missing_is_never_made_again_empty(volume: Volume, is_seen: bool) -> None:
    seen = VolumeSeen(volume_id=volume.disk_id, host="", size_bytes=volume.made_bytes) if is_seen else None
    act = next_act(volume, seen, (), has_instance=False)
    if act == VolumeAct.CREATE:
        assert is_seen or volume.made_bytes == 0
