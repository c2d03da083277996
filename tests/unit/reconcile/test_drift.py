"""Drift finds every difference between an engine and the database, and changes nothing else."""

from hypothesis import given
from hypothesis import strategies as st

from teraflock.instance.driver import Seen, Sighting
from teraflock.instance.model import InstanceId
from teraflock.instance.states import Phase, Wanted
from teraflock.reconcile.drift import decide
from teraflock.reconcile.known import KnownGuest

HOSTS = ("one", "two")

kept_rows = st.builds(
    KnownGuest,
    id=st.sampled_from([f"ins_{number}" for number in range(6)]),
    phase=st.sampled_from([phase.value for phase in Phase]),
    wanted=st.sampled_from([wanted.value for wanted in Wanted]),
    host=st.sampled_from(HOSTS),
    busy=st.booleans(),
    vcpus=st.integers(1, 2),
    ram_bytes=st.integers(1, 2),
    disk_bytes=st.integers(1, 2),
    slots=st.sampled_from([(), ("a",), ("a", "b")]),
)
told = st.one_of(st.none(), st.integers(1, 2))
sightings = st.builds(
    Sighting,
    instance_id=st.just(InstanceId("ins_x")),
    host=st.just("one"),
    seen=st.sampled_from(list(Seen)),
    vcpus=told,
    ram_bytes=told,
    disk_bytes=told,
    slots=st.sampled_from([None, (), ("a",), ("a", "b")]),
    altered=st.booleans(),
)
seen_things = st.dictionaries(
    st.sampled_from([f"ins_{number}" for number in range(8)]), st.sampled_from(list(Seen)), max_size=8
)


@given(
    st.lists(kept_rows, unique_by=lambda each: each.id), seen_things, st.frozensets(st.sampled_from(HOSTS))
)
def test_only_what_differs_is_repaired(
    kept: list[KnownGuest], seen: dict[str, Seen], answering: frozenset[str]
) -> None:
    sightings = {
        id: Sighting(instance_id=InstanceId(id), host="one", seen=state) for id, state in seen.items()
    }
    drift = decide(kept, sightings, answering)
    by_id = {each.id: each for each in kept}
    for id in (*drift.start, *drift.stop, *drift.remake, *drift.back):
        assert not by_id[id].busy
        assert by_id[id].host in answering
    assert all(seen[id] in (Seen.STOPPED, Seen.BROKEN) for id in drift.start)
    assert all(id not in seen for id in drift.remake)
    assert all(
        by_id[id].phase == Phase.STOPPED and seen[id] in (Seen.RUNNING, Seen.PENDING) for id in drift.stop
    )
    assert {sighting.instance_id for sighting in drift.unknown} == seen.keys() - by_id.keys()
    for each in kept:
        calm = each.phase == Phase.RUNNING and seen.get(each.id) == Seen.RUNNING
        if calm:
            assert each.id not in (*drift.start, *drift.stop, *drift.remake, *drift.back)
        lost = (
            each.phase == Phase.RUNNING and each.id not in seen and not each.busy and each.host in answering
        )
        assert not lost or each.id in drift.remake


@given(kept_rows, sightings)
def test_limits_and_cards_are_compared_only_for_idle_running_guests(
    kept: KnownGuest, sighting: Sighting
) -> None:
    drift = decide([kept], {kept.id: sighting}, frozenset(HOSTS))
    compared = kept.phase == Phase.RUNNING and not kept.busy and sighting.seen == Seen.RUNNING
    cards = sighting.slots is not None and set(sighting.slots) != set(kept.slots)
    pairs = [
        (sighting.vcpus, kept.vcpus),
        (sighting.ram_bytes, kept.ram_bytes),
        (sighting.disk_bytes, kept.disk_bytes),
    ]
    limits = any(seen is not None and seen != given for seen, given in pairs)
    assert drift.exchange == ((kept.id,) if compared and cards else ())
    assert drift.refit == ((kept.id,) if compared and not cards and (limits or sighting.altered) else ())
    assert bool(drift) == any(
        (drift.start, drift.stop, drift.remake, drift.back, drift.refit, drift.exchange, drift.unknown)
    )


@given(kept_rows)
def test_unchanged_instance_does_not_drift(kept: KnownGuest) -> None:
    as_given = Sighting(
        instance_id=InstanceId(kept.id),
        host=kept.host,
        seen=Seen.RUNNING,
        vcpus=kept.vcpus,
        ram_bytes=kept.ram_bytes,
        disk_bytes=kept.disk_bytes,
        slots=kept.slots,
    )
    for sighting in (as_given, Sighting(instance_id=as_given.instance_id, host=kept.host, seen=Seen.RUNNING)):
        drift = decide([kept], {kept.id: sighting}, frozenset(HOSTS))
        assert not drift.refit
        assert not drift.exchange
