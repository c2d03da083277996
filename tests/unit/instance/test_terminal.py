"""Terminals: nothing is lost or repeated, memory is bounded, and a terminal belongs to one session."""

import queue
import threading
from datetime import UTC, datetime, timedelta
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from teraflock.base.clock import FixedClock
from teraflock.base.errors import NotFound, TooMany
from teraflock.drivers.simulated.terminal import SimulatedTerminal
from teraflock.instance.driver import Ran
from teraflock.instance.engines import Engines
from teraflock.instance.model import InstanceId
from teraflock.instance.terminal.model import KEPT_BYTES, UNREAD_BYTES_MAX, OpenTerminal
from teraflock.instance.terminal.service import UNREAD_FOR_MAX, TerminalService
from teraflock.storage.database import Database
from teraflock.tenant.model import Actor, By, KeyId, MemberId, OrganisationId, Project, ProjectId, Quota

NOW = datetime(2026, 11, 16, tzinfo=UTC)


class Shell:
    """A shell whose output and pace the test decides."""

    def __init__(self) -> None:
        self.output: queue.Queue[bytes] = queue.Queue()
        self.reads = 0
        self.written = b""
        self.closed = False

    def read(self) -> bytes:
        self.reads += 1
        return self.output.get()

    def write(self, content: bytes) -> None:
        self.written += content

    def resize(self, columns: int, rows: int) -> None:
        pass

    def close(self) -> None:
        self.closed = True
        self.output.put(b"")


def opened(shell: Shell) -> OpenTerminal:
    return OpenTerminal(
        "trm_1", project_id=ProjectId("prj"), instance_id=InstanceId("ins"), key_id="ses", organisation_id="org",
        engine=shell, opened_at=NOW,
    )  # fmt: skip


@given(st.lists(st.binary(min_size=1, max_size=40), max_size=20), st.lists(st.integers(0, 400), max_size=12))
def test_a_reader_who_comes_back_continues_where_it_was(pieces: list[bytes], stops: list[int]) -> None:
    shell = Shell()
    terminal = opened(shell)
    for piece in (*pieces, b""):
        shell.output.put(piece)
    terminal.pump()
    whole = b"".join(pieces)
    for place in stops:
        after, content = terminal.take(place)
        assert content == whole[min(place, len(whole)) :]
        assert after == len(whole)
    assert terminal.ended
    assert shell.closed


def test_a_shell_waits_for_a_reader_who_does_not_read() -> None:
    shell = Shell()
    terminal = opened(shell)
    pump = threading.Thread(target=terminal.pump, daemon=True)
    piece = b"x" * (64 << 10)
    for _ in range(100):
        shell.output.put(piece)
    pump.start()
    place = total = 0
    while total < 100 * len(piece):
        place, content = terminal.take(place)
        total += len(content)
        unread = shell.reads * len(piece) - place
        assert unread <= UNREAD_BYTES_MAX + 2 * len(piece) + KEPT_BYTES
        assert len(terminal._kept) <= UNREAD_BYTES_MAX + KEPT_BYTES + len(piece)
    terminal.end()
    pump.join(10)
    assert not pump.is_alive()
    assert total == 100 * len(piece)


def test_input_that_nobody_reads_is_refused_before_it_fills_the_memory() -> None:
    terminal = opened(Shell())
    terminal.type(b"x" * UNREAD_BYTES_MAX)
    with pytest.raises(TooMany):
        terminal.type(b"x")


def test_input_is_written_in_order() -> None:
    shell = Shell()
    terminal = opened(shell)
    feed = threading.Thread(target=terminal.feed, daemon=True)
    feed.start()
    for number in range(200):
        terminal.type(b"%d " % number)
    while len(shell.written) < len(b"".join(b"%d " % number for number in range(200))):
        pass
    terminal.end()
    feed.join(10)
    assert shell.written == b"".join(b"%d " % number for number in range(200))


def simulated() -> SimulatedTerminal:
    def run(words: object) -> Ran:
        return Ran(exit_code=0, stdout=f"ran {words}\n".encode(), stderr=b"")

    return SimulatedTerminal("guest", run, columns=80, rows=24)


def read_all(shell: SimulatedTerminal) -> bytes:
    shell.close()
    found = b""
    while piece := shell.read():
        found += piece
    return found


def test_a_simulated_shell_echoes_edits_and_runs() -> None:
    shell = simulated()
    shell.write("echo 世界x\x7f\r".encode())
    output = read_all(shell).decode()
    assert "SIMULATED" in output
    assert "ran ['echo', '世界']\r\n" in output


@given(st.binary(max_size=200))
def test_a_simulated_shell_survives_any_input(content: bytes) -> None:
    shell = simulated()
    shell.write(content)
    assert read_all(shell).startswith(b"SIMULATED")


def test_a_terminal_without_a_reader_ends_and_belongs_to_its_session() -> None:
    clock = FixedClock(NOW)
    service = TerminalService(cast(Database, None), clock, Engines(()), bytes)
    read, left = Shell(), Shell()
    service._open = {"trm_1": opened(read), "trm_2": opened(left)}
    service.enter(service._open["trm_1"])
    project = Project(
        id=ProjectId("prj"), organisation_id=OrganisationId("org"), name="p", quota=Quota(), network_number=0,
        created_at=NOW,
    )  # fmt: skip
    owner = Actor(
        key_id=KeyId("ses"), member_id=MemberId("mem"), member_name="ann", organisation_id=OrganisationId("org"),
        is_operator=False, roles={},
    )  # fmt: skip
    assert service.get(By(actor=owner, project=project), "trm_1").engine is read
    for by in (
        By(actor=replace(owner, key_id=KeyId("another session")), project=project),
        By(actor=owner, project=replace(project, id=ProjectId("another project"))),
    ):
        with pytest.raises(NotFound):
            service.get(by, "trm_1")
    clock.move(UNREAD_FOR_MAX - timedelta(seconds=1))
    service.end_unread()
    assert not left.closed
    clock.move(timedelta(seconds=1))
    service.end_unread()
    assert (read.closed, left.closed) == (False, True)
    service.leave(service._open["trm_1"])
    service.close()
    assert read.closed
