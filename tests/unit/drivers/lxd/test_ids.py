"""Ranges of user ids: no two guests share one, and a range is not reused while traces of its last owner
exist."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from teraflock.drivers.lxd import ids
from teraflock.drivers.lxd.ids import Traces
from teraflock.instance.engine_errors import NoRoom


def none() -> set[int]:
    return set()


def Ranges(installation: str, folder: Path, traces: Traces) -> ids.Ranges:  # noqa: N802 -- replaces the class
    """Ranges that do not touch this machine's own files."""
    return ids.Ranges(installation, folder / "ids", traces, [folder / "subuid"])


@given(index=st.integers(0, ids.COUNT - 1), offset=st.integers(0, ids.SIZE - 1))
def test_every_id_of_a_range_belongs_to_it(index: int, offset: int) -> None:
    assert ids.index_of(ids.base(index) + offset) == index
    assert ids.base(index) + ids.SIZE <= 1 << 31, "ids fit into signed numbers, which some programs need"


@given(uid=st.integers(0, ids.FIRST - 1) | st.integers(ids.base(ids.COUNT), 1 << 32))
def test_other_ids_belong_to_no_range(uid: int) -> None:
    assert ids.index_of(uid) is None


def test_guest_keeps_its_range_exclusively(tmp_path: Path) -> None:
    one, other = Ranges("one", tmp_path, none), Ranges("other", tmp_path, none)
    first = one.take("a", [5])
    assert first == 5
    assert one.take("a") == 5
    assert Ranges("one", tmp_path, none).of("a") == 5, "also in another process"
    assert other.take("a", [5]) != 5, "installations on one host share the ranges"
    one.release("a")
    assert other.take("b", [5]) == 5


def test_range_with_traces_is_skipped(tmp_path: Path) -> None:
    traces = {5}
    ranges = Ranges("one", tmp_path, lambda: traces)
    assert ranges.take("a", [5, 6]) == 6
    traces.clear()
    assert ranges.take("b", [5, 6]) == 5


def test_concurrent_claims_get_different_ranges(tmp_path: Path) -> None:
    def take(number: int) -> int:
        return Ranges(f"i{number % 3}", tmp_path, none).take(f"guest-{number}", range(32), spare=32)

    with ThreadPoolExecutor(24) as pool:
        found = list(pool.map(take, range(200)))
    assert len(set(found)) == 200


def test_claim_fails_when_all_ranges_are_used(tmp_path: Path) -> None:
    ranges = Ranges("one", tmp_path, lambda: set(range(1, ids.COUNT)))
    assert ranges.take("a") == 0
    with pytest.raises(NoRoom):
        ranges.take("b")


def test_claims_without_a_guest_are_released_after_a_while(tmp_path: Path) -> None:
    ranges = Ranges("one", tmp_path, none)
    for name in ("lives", "crashed"):
        ranges.take(name)
    ranges.keep_only(["lives"], seconds=600)
    assert ranges.of("crashed") is not None, "its guest may still be in creation"
    ranges.keep_only(["lives"], seconds=0)
    assert ranges.of("crashed") is None
    assert ranges.of("lives") is not None


def test_lost_folder_is_rebuilt_from_the_guests(tmp_path: Path) -> None:
    ranges = Ranges("one", tmp_path, none)
    ranges.adopt({"a": str(ids.base(9)), "old": "100000", "older": ""})
    assert ranges.of("a") == 9
    assert ranges.of("old") is ranges.of("older") is None
    assert ranges.take("b", [9]) != 9


def test_processes_and_keys_are_traces(tmp_path: Path) -> None:
    (tmp_path / "123").mkdir()
    (tmp_path / "key-users").write_text(
        f"    0:    50 49/49 35/1000000 600/25000000\n{ids.base(3) + 7:5}:  1 1/1 1/200\n"
    )
    assert ids.indexes_in_use(tmp_path) == {3}


def test_grant_is_added_once_and_revoked(tmp_path: Path) -> None:
    file = tmp_path / "subuid"
    file.write_text("root:100000:10000001")
    for _ in range(2):
        ids.grant([file])
    assert file.read_text() == f"root:100000:10000001\n{ids.GRANT}"
    ids.revoke([file, tmp_path / "missing"])
    assert file.read_text() == "root:100000:10000001\n"


def test_leaving_revokes_what_no_installation_needs(tmp_path: Path) -> None:
    one, other = Ranges("one", tmp_path, none), Ranges("other", tmp_path, none)
    one.take("a")
    other.take("b")
    one.leave()
    assert ids.GRANT in (tmp_path / "subuid").read_text(), "another installation still needs it"
    other.leave()
    assert (tmp_path / "subuid").read_text() == ""
    assert not (tmp_path / "ids").exists()
