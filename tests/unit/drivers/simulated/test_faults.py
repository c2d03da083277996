"""Faults happen at the given point, as often as requested, and leave what a crash there would leave."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.unit.drivers.simulated.worlds import FIRST_HOST, Bench, bench, machine

from teraflock.base.errors import BadInput
from teraflock.drivers.simulated.faults import Killed, Kind, SimulatedFault, When, parse, taken
from teraflock.drivers.simulated.model import Guest
from teraflock.instance.driver import Seen
from teraflock.instance.engine_errors import DoesNotBoot, EngineBusy, EngineDown, EngineRefused, NoRoom

FORMS = pytest.mark.parametrize("form", ["memory", "file"])
FAULTS = st.builds(
    SimulatedFault,
    call=st.sampled_from(["create", "start", "*"]),
    when=st.sampled_from(When),
    kind=st.sampled_from(Kind),
    times=st.integers(1, 3),
    instance=st.sampled_from(["", "ins_1"]),
)


@given(faults=st.lists(FAULTS, max_size=4))
def test_faults_read_back_from_their_text(faults: list[SimulatedFault]) -> None:
    words = (
        f"{fault.call}:{fault.when}:{fault.kind}{f'*{fault.times}' if fault.times > 1 else ''}"
        f"{f'@{fault.instance}' if fault.instance else ''}"
        for fault in faults
    )
    assert parse(", ".join(words)) == tuple(faults)


@pytest.mark.parametrize(
    "words", ["create", "create:then:killed", "create:half:bored", "create:half:killed*x"]
)
def test_invalid_fault_is_refused(words: str) -> None:
    with pytest.raises(BadInput, match="Invalid fault"):
        parse(words)


@given(faults=st.lists(FAULTS, max_size=3))
def test_every_fault_comes_as_often_as_it_should(faults: list[SimulatedFault]) -> None:
    left = tuple(faults)
    happened = 0
    for _ in range(20):
        fault, left = taken(left, "create", "ins_1")
        happened += fault is not None
    assert happened == sum(fault.times for fault in faults if fault.call != "start")


def test_fault_can_skip_calls() -> None:
    left: tuple[SimulatedFault, ...] = (SimulatedFault(call="start", kind=Kind.BUSY, after_calls=2),)
    seen = []
    for _ in range(4):
        fault, left = taken(left, "start", "")
        seen.append(fault is not None)
    assert seen == [False, False, True, False]


@FORMS
@pytest.mark.parametrize(
    ("kind", "error"),
    [
        (Kind.ENGINE_DOWN, EngineDown),
        (Kind.BUSY, EngineBusy),
        (Kind.REFUSED, EngineRefused),
        (Kind.NO_ROOM, NoRoom),
        (Kind.DOES_NOT_BOOT, DoesNotBoot),
        (Kind.KILLED, Killed),
    ],
)
def test_each_kind_before_half_and_after(
    form: str, kind: Kind, error: type[BaseException], tmp_path: Path
) -> None:
    table = bench(form, tmp_path)
    one = machine(1)
    table.engine.prepare(one)
    found = {}
    for when in When:
        table.trouble.faults(SimulatedFault(call="create", when=when, kind=kind))
        with pytest.raises(error):
            table.engine.create(one)
        sighting = table.engine.look(one.handle)
        found[when] = None if sighting is None else sighting.seen
        table.engine.delete(one.handle)
    assert found == {When.BEFORE: None, When.HALF: Seen.BROKEN, When.AFTER: Seen.STOPPED}
    assert table.trouble.faults_left() == ()


@FORMS
def test_incomplete_guest_is_completed_or_removed(form: str, tmp_path: Path) -> None:
    table = bench(form, tmp_path)
    one, two = machine(1), machine(2)
    for each in (one, two):
        table.engine.prepare(each)
        table.trouble.faults(SimulatedFault(call="create", when=When.HALF, kind=Kind.KILLED))
        with pytest.raises(Killed):
            table.engine.create(each)
        with pytest.raises(EngineRefused):
            table.engine.start(each.handle)
    table.engine.create(one)
    assert _seen(table, 1) == Seen.STOPPED
    table.engine.delete(two.handle)
    assert _seen(table, 2) is None


@FORMS
def test_interrupted_delete_continues(form: str, tmp_path: Path) -> None:
    table = bench(form, tmp_path)
    table.launch(machine(1))
    table.trouble.faults(SimulatedFault(call="delete", when=When.HALF, kind=Kind.ENGINE_DOWN))
    with pytest.raises(EngineDown):
        table.engine.delete(machine(1).handle)
    assert _seen(table, 1) == Seen.BROKEN
    table.engine.delete(machine(1).handle)
    assert _seen(table, 1) is None


@FORMS
def test_fault_for_one_instance_does_not_affect_others(form: str, tmp_path: Path) -> None:
    table = bench(form, tmp_path)
    table.trouble.faults(SimulatedFault(call="create", kind=Kind.REFUSED, instance="ins_0002"))
    for number in (1, 3):
        table.launch(machine(number))
    with pytest.raises(EngineRefused):
        table.launch(machine(2))


@FORMS
def test_a_call_that_is_refused_changes_nothing(form: str, tmp_path: Path) -> None:
    table = bench(form, tmp_path)
    table.launch(machine(1))
    table.engine.prepare(machine(2))
    with pytest.raises(EngineRefused, match="address"):
        table.engine.create(replace(machine(2), address=machine(1).address))
    assert _seen(table, 2) is None
    table.trouble.pool_is_full(FIRST_HOST)
    with pytest.raises(NoRoom):
        table.engine.create(machine(2))
    with pytest.raises(NoRoom):
        table.engine.resize(replace(machine(1), disk_bytes=1 << 34))
    with pytest.raises(NoRoom):
        table.engine.snapshot(machine(1).handle, "snp_1")
    table.trouble.pool_is_full(FIRST_HOST, full=False)
    table.engine.create(machine(2))


def test_memory_world_undoes_a_failed_turn() -> None:
    table = bench("memory", Path())
    table.launch(machine(1))
    before = list(table.engine.sightings())
    with pytest.raises(ZeroDivisionError):
        _fail_after_a_change(table)
    assert list(table.engine.sightings()) == before


def _fail_after_a_change(table: Bench) -> None:
    with table.world.write() as turn:
        turn.remove(Guest, "ins_0001")
        raise ZeroDivisionError


def _seen(table: Bench, number: int) -> Seen | None:
    found = table.engine.look(machine(number).handle)
    return None if found is None else found.seen
