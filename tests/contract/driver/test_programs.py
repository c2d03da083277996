"""Programs in a guest, on every engine. All tests of this file share one guest, because they leave it as it was."""

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.contract.driver.grounds import Guest, examples
from tests.contract.driver.test_fuzz import NAME, WORDS

from teraflock.instance.terminal.model import EngineTerminal, TerminalDriver


def test_programs_run_with_input_output_and_exit_code(guest: Guest) -> None:
    ground, machine = guest
    content = bytes(range(256)) * 512  # more than a pipe holds
    assert ground.words(machine, "cat", stdin=content) == content
    ran = ground.driver.run(machine.handle, ("false",), stdin=b"", seconds_max=30)
    assert (ran.exit_code, ran.stdout) == (1, b"")
    ran = ground.driver.run(machine.handle, ("cat", "/no/such/file"), stdin=b"", seconds_max=30)
    assert ran.exit_code == 1
    assert b"No such file" in ran.stderr


def test_arguments_reach_a_program_unchanged(guest: Guest) -> None:
    ground, machine = guest
    words = ("$HOME", "a b", ";", "`id`", "$(id)", "'", '"', "*", "\n", "\\", "é", "--", "|", ">x")
    assert ground.words(machine, "echo", *words).decode() == " ".join(words) + "\n"


def test_missing_program_exits_with_127(guest: Guest) -> None:
    ground, machine = guest
    ran = ground.driver.run(machine.handle, ("no-such-program",), stdin=b"", seconds_max=30)
    assert ran.exit_code != 0


def test_program_over_its_time_limit_is_killed(guest: Guest) -> None:
    ground, machine = guest
    ran = ground.driver.run(machine.handle, ("sleep", "1000"), stdin=b"", seconds_max=0.5)
    assert ran.exit_code != 0


def test_a_terminal_runs_a_shell_until_it_ends(guest: Guest) -> None:
    ground, machine = guest
    if not isinstance(ground.driver, TerminalDriver):
        pytest.skip("this engine has no terminals")
    terminal = ground.driver.open_terminal(machine.handle, columns=90, rows=30)
    try:
        terminal.write(b"cat /etc/hostname\r")
        assert _until(terminal, f"{machine.hostname}\r\n".encode())
        terminal.resize(111, 33)
        terminal.write(b"stty size\r")
        assert _until(terminal, b"33 111\r\n")
        terminal.write("echo größer-世界\r".encode())
        assert _until(terminal, "größer-世界\r\n".encode())
        terminal.write(b"exit\r")
        assert not _until(terminal, b"never written")
    finally:
        terminal.close()
        terminal.close()


def _until(terminal: EngineTerminal, words: bytes) -> bool:
    """Read until these words; False: the shell ended before."""
    seen = b""
    while words not in seen:
        content = terminal.read()
        if not content:
            return False
        seen += content
    return True


def test_a_closed_terminal_wakes_its_reader(guest: Guest) -> None:
    ground, machine = guest
    if not isinstance(ground.driver, TerminalDriver):
        pytest.skip("this engine has no terminals")
    terminal = ground.driver.open_terminal(machine.handle, columns=80, rows=24)
    reader = threading.Thread(target=_until, args=(terminal, b"never written"), daemon=True)
    reader.start()
    terminal.close()
    reader.join(30)
    assert not reader.is_alive()


def test_the_console_of_a_guest_can_be_read(guest: Guest) -> None:
    ground, machine = guest
    assert isinstance(ground.driver.console(machine.handle), bytes)


def test_an_instance_without_a_command_has_no_state_of_it(guest: Guest) -> None:
    ground, machine = guest
    assert ground.driver.command_state(machine.handle) is None


def test_arguments_survive_unchanged(guest: Guest) -> None:
    ground, machine = guest

    @examples(ground)
    @given(words=WORDS.filter(lambda words: not words[0].startswith("-")))
    def come_back(words: list[str]) -> None:
        assert ground.words(machine, "echo", *words).decode() == " ".join(words) + "\n"

    come_back()


def test_file_contents_survive_unchanged(guest: Guest) -> None:
    ground, machine = guest

    @examples(ground)
    @given(content=st.binary(max_size=5000), name=NAME)
    def come_back(content: bytes, name: str) -> None:
        ground.words(machine, "tee", f"/root/{name}", stdin=content)
        assert ground.words(machine, "cat", f"/root/{name}") == content

    come_back()
