"""What differs between an engine and our books is found, and nothing else is touched."""

from hypothesis import given
from hypothesis import strategies as st

from teraflock.instance.driver import Seen, Sighting
from teraflock.instance.model import InstanceId
from teraflock.instance.states import Phase, Wanted
from teraflock.reconcile.drift import Kept, decide

HOSTS = ("one", "two")

kept_rows = st.builds(
    Kept,
    id=st.sampled_from([f"ins_{number}" for number in range(6)]),
    phase=st.sampled_from([phase.value for phase in Phase]),
    wanted=st.sampled_from([wanted.value for wanted in Wanted]),
    host=st.sampled_from(HOSTS),
    host_state=st.just("ready"),
    busy=st.booleans(),
)
seen_things = st.dictionaries(
    st.sampled_from([f"ins_{number}" for number in range(8)]), st.sampled_from(list(Seen)), max_size=8
)


@given(
    st.lists(kept_rows, unique_by=lambda each: each.id), seen_things, st.frozensets(st.sampled_from(HOSTS))
)
def test_only_what_differs_is_repaired(
    kept: list[Kept], seen: dict[str, Seen], answering: frozenset[str]
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
    assert {sighting.instance_id for sighting in drift.strange} == seen.keys() - by_id.keys()
    for each in kept:
        calm = each.phase == Phase.RUNNING and seen.get(each.id) == Seen.RUNNING
        if calm:
            assert each.id not in (*drift.start, *drift.stop, *drift.remake, *drift.back)
        lost = (
            each.phase == Phase.RUNNING and each.id not in seen and not each.busy and each.host in answering
        )
        assert not lost or each.id in drift.remake
