"""A guest belongs to a tenant: whatever it answers is bounded, and nothing of it is believed."""

from datetime import UTC, datetime

import msgspec
import pytest

from teraflock.base.errors import TeraflockError
from teraflock.instance.archive import ENTRIES_MAX
from teraflock.instance.driver import Handle, Ran
from teraflock.instance.model import InstanceId
from teraflock.run.checkpoint import KEPT_MAX, GuestEntry, not_kept, to_drop, to_pull
from teraflock.run.guest import RunGuest
from teraflock.run.model import Checkpoint, RunId

NOW = datetime(2026, 1, 1, tzinfo=UTC)


class Liar:
    """A driver whose guest answers as it is told."""

    def __init__(self, stdout: bytes = b"", stderr: bytes = b"", exit_code: int = 0) -> None:
        self._ran = Ran(exit_code=exit_code, stdout=stdout, stderr=stderr)

    def run(self, *_: object, **__: object) -> Ran:
        return self._ran


def guest(**answer: object) -> RunGuest:
    return RunGuest(Liar(**answer), Handle(InstanceId("ins_1"), "host"))  # type: ignore[arg-type]


GOOD = {"state": "running", "exit_code": None, "log_bytes": 0, "progress": ""}


@pytest.mark.parametrize(
    "change",
    [
        {"state": "done\x1b[2J"},
        {"exit_code": 10**30},
        {"exit_code": -1},
        {"log_bytes": -5},
        {"log_bytes": 10**30},
        {"progress": "x" * 5000},
        {"progress": None},
    ],
)
def test_states_out_of_range_are_refused(change: dict[str, object]) -> None:
    with pytest.raises(TeraflockError, match="not a state"):
        guest(stdout=msgspec.json.encode({**GOOD, **change}) + b"\n").state("run.1", 0)
    with pytest.raises(TeraflockError, match="not a state"):
        guest(stdout=b"\xff\x00 nonsense").state("run.1", 0)


def test_log_that_is_only_announced_is_not_waited_for() -> None:
    seen = guest(stdout=msgspec.json.encode({**GOOD, "log_bytes": 10**15}) + b"\n").state("run.1", 0)
    assert not seen.has_more(0)


def test_errors_of_the_guest_cannot_change_a_terminal() -> None:
    with pytest.raises(TeraflockError) as told:
        guest(stderr=b"first\n\x1b[2Jevil\x07", exit_code=1).signal("run.1", 15)
    assert told.value.sentence.isprintable()
    assert "first" not in told.value.sentence


def test_entries_are_bounded_and_odd_names_are_not_pulled() -> None:
    names = [
        "../../etc/passwd",
        "a/b",
        "\x1b[2J",
        "",
        ".hidden",
        "good-1",
        "good-2",
        "half.tmp",
        "ä",
        "x" * 300,
    ]
    entries = [{"name": name, "mark": "m" * 10_000, "written_ns": 1, "size_bytes": 1} for name in names]
    found = guest(stdout=msgspec.json.encode(entries * 1000)).entries("/root/checkpoints")
    assert len(found) == 1000
    assert all(len(each.mark) == 64 for each in found)
    pulled = to_pull(found[: len(names)], (), keep=9, bytes_max=10)
    assert [each.name for each in pulled] == ["good-1", "good-2"]
    with pytest.raises(TeraflockError, match="not a state"):
        guest(stdout=b'[{"name": "a", "mark": "", "written_ns": 1e40, "size_bytes": 1}]').entries("/x")


def test_checkpoints_of_each_series_are_kept_apart() -> None:
    seen = [
        GuestEntry(name=name, mark=str(at), written_ns=at, size_bytes=1)
        for at, name in enumerate(["step-1", "step-2", "step-10", "best.pt", "optimizer.pt"])
    ]
    pulled = to_pull(seen, (), keep=2, bytes_max=10)
    assert [each.name for each in pulled] == ["step-2", "step-10", "best.pt", "optimizer.pt"]
    assert to_pull(seen, (), keep=2, bytes_max=0) == (), "too large"


def test_checkpoints_that_are_never_copied_are_told() -> None:
    sizes = {"sparse-1": 1 << 40, "step 1.pt": 1, "a\n\x1b[2J": 1, "good": 1, "half.tmp": 1 << 40}
    seen = [GuestEntry(name=name, mark="", written_ns=1, size_bytes=size) for name, size in sizes.items()]
    told = not_kept(seen, keep=3, bytes_max=8 << 30)
    assert told.startswith("`sparse-1` has more than 8")
    assert told.endswith("2 names with other characters than letters, digits and `._=+@-`")
    assert told.isprintable()
    assert not not_kept(seen[3:], keep=3, bytes_max=8 << 30)


def test_folder_with_too_many_files_is_not_read() -> None:
    seen = [
        GuestEntry(name=f"shards-{files}", mark="", written_ns=1, size_bytes=1, files=files)
        for files in (ENTRIES_MAX, ENTRIES_MAX + 1)
    ]
    assert [each.name for each in to_pull(seen, (), keep=3, bytes_max=10)] == ["shards-10000"]
    assert not_kept(seen, keep=3, bytes_max=10) == "`shards-10001` has more than 10,000 files"


def test_names_that_are_always_new_are_not_kept_without_end() -> None:
    kept: list[Checkpoint] = []
    for turn in range(3):
        names = [f"{turn * 1000 + at:04d}".translate(LETTERS) for at in range(1000)]
        seen = [
            GuestEntry(name=name, mark="", written_ns=turn * 1000 + at, size_bytes=1)
            for at, name in enumerate(names)
        ]
        kept += map(copy_of, to_pull(seen, kept, keep=3, bytes_max=10))
        gone = {each.id for each in to_drop(kept, keep=3)}
        kept = [each for each in kept if each.id not in gone]
    assert len(kept) == KEPT_MAX
    assert min(each.written_ns for each in kept) == 2000, "the newest"


LETTERS = str.maketrans("0123456789", "abcdefghij")


def copy_of(entry: GuestEntry) -> Checkpoint:
    return Checkpoint(
        id=f"ckp_{entry.name}",
        run_id=RunId("run_1"),
        name=entry.name,
        mark=entry.mark,
        written_ns=entry.written_ns,
        size_bytes=1,
        digest="",
        pulled_at=NOW,
    )


class Notes:
    """A driver that notes what it is asked to send."""

    def __init__(self) -> None:
        self.sent: list[bytes] = []

    def run(self, _: Handle, command: tuple[str, ...], *, stdin: bytes, seconds_max: float) -> Ran:
        if "receive" in command:
            assert int(command[-1]) == sum(map(len, self.sent))
            self.sent.append(stdin)
        return Ran(exit_code=0, stdout=b"", stderr=b"")


def test_a_tar_is_sent_with_few_calls() -> None:
    """Each call starts a program in the guest: 331 MB in pieces of 1 MB took 36 s."""
    driver = Notes()
    pieces = [bytes([number]) * 1_000_000 for number in range(40)]
    RunGuest(driver, Handle(InstanceId("ins_1"), "host")).put("run.1", pieces, "/root/work", replace=True)  # type: ignore[arg-type]
    assert b"".join(driver.sent) == b"".join(pieces)
    assert len(driver.sent) <= 4
