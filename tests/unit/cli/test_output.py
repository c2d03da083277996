"""The output of guests on a terminal of a user: it may have colours, and change nothing else."""

import io
import sys
from contextlib import nullcontext
from datetime import UTC, datetime
from types import SimpleNamespace

import pytest

from teraflock.cli.event import _write_one
from teraflock.cli.instance import exec
from teraflock.cli.output import complain, harmless, remark, write_output
from teraflock.wire.event import EventAnswer
from teraflock.wire.instance import ExecAnswer

HOSTILE = [
    "\x1b]0;title\x07",
    "\x1b]52;c;cm0gLXJm\x1b\\",
    "\x1b]8;;http://evil.example\x9c",
    "\x1b]unfinished",
    "\x1bPdevice control\x1b\\",
    "\x1b_application\x1b\\",
    "\x1b[6n",
    "\x1b[c",
    "\x1b[21t",
    "\x1b[?1049h",
    "\x1b[2J",
    "\x1b[10;1H",
    "\x1b[99A",
    "\x1b[1;2",
    "\x1bc",
    "\x9b6n",
    "\x00",
    "\x7f",
    "\x07",
]


@pytest.mark.parametrize("escape", HOSTILE)
def test_nothing_of_a_guest_reaches_the_terminal_but_text_and_colours(escape: str) -> None:
    shown = harmless(f"before{escape}\nafter")
    assert all(each.isprintable() or each == "\n" for each in shown)
    assert shown.startswith("before")
    assert shown.endswith("\nafter"), "an escape without an end hides only its own line"


def test_colours_and_progress_bars_stay() -> None:
    bar = "\r\x1b[K 10%|\x1b[38;5;196m█\x1b[0m\t| 1/10\b\r\n漢字 🇩🇪 👩‍🔬"
    assert harmless(bar) == bar


class Stream(io.StringIO):
    def __init__(self, *, terminal: bool) -> None:
        super().__init__()
        self._terminal = terminal

    def isatty(self) -> bool:
        return self._terminal


@pytest.mark.parametrize(("terminal", "shown"), [(True, "ab\n"), (False, "a\x1b]0;x\x07b\n")])
def test_only_a_terminal_is_protected(monkeypatch: pytest.MonkeyPatch, terminal: bool, shown: str) -> None:
    stdout = Stream(terminal=terminal)
    monkeypatch.setattr(sys, "stdout", stdout)
    write_output("a\x1b]0;x\x07b\n")
    assert stdout.getvalue() == shown


def test_messages_that_quote_something_from_elsewhere_are_harmless(monkeypatch: pytest.MonkeyPatch) -> None:
    stderr = Stream(terminal=True)
    monkeypatch.setattr(sys, "stderr", stderr)
    complain("Unknown word `\x1b]0;x\x07`", "Or\nnot\x1b[2J")
    remark("web: no\x1b[6n room")
    assert stderr.getvalue() == "error: Unknown word ``\n\nhint: Or\nnot\nweb: no room\n"


def test_output_of_a_command_in_a_guest_is_harmless(monkeypatch: pytest.MonkeyPatch) -> None:
    ran = ExecAnswer(exit_code=0, stdout="a\x1b]52;c;cm0=\x07b\n", stderr="")
    client = SimpleNamespace(instances=SimpleNamespace(exec=lambda name, request: ran))
    monkeypatch.setattr(exec, "connected", lambda project: nullcontext(client))
    monkeypatch.setattr(exec, "mark_simulated", lambda client: None)
    stdout = Stream(terminal=True)
    monkeypatch.setattr(sys, "stdout", stdout)
    with pytest.raises(SystemExit):
        exec.command.main(["web", "--", "ls"], standalone_mode=False)
    assert stdout.getvalue() == "ab\n"


def test_events_that_are_followed_are_harmless(monkeypatch: pytest.MonkeyPatch) -> None:
    stdout = Stream(terminal=True)
    monkeypatch.setattr(sys, "stdout", stdout)
    at = datetime(2026, 11, 15, tzinfo=UTC)
    details = {"reason": "\x1b]0;x\x07no room"}
    _write_one(EventAnswer(id="evt_1", at=at, kind="queue.waits", subject="que_1", details=details), False)
    assert "\x1b" not in stdout.getvalue()
    assert "no room" in stdout.getvalue()
