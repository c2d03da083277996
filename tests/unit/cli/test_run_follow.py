"""Following a run goes on while the server restarts, whatever it was asked when it ended."""

from types import SimpleNamespace
from typing import Any

import pytest

from teraflock.base.errors import Unavailable
from teraflock.cli.run.follow import follow


class Restarting:
    """The runs of a server that does not answer every first request of its kind."""

    def __init__(self) -> None:
        self.refused: set[str] = set()
        self._logs = iter(
            [("one\n", 4, "running"), ("", 4, "running"), ("two\n", 8, "running"), ("", 8, "done")]
        )

    def log(self, ref: str, offset: int, node: int) -> Any:
        self._may_refuse(f"log {offset}")
        text, after, state = next(self._logs)
        return SimpleNamespace(text=text, next=after, state=state)

    def get(self, ref: str) -> Any:
        self._may_refuse("get")
        return SimpleNamespace(name=ref, state="done")

    def _may_refuse(self, asked: str) -> None:
        if asked not in self.refused:
            self.refused.add(asked)
            raise Unavailable("The server does not answer", hint="")


@pytest.fixture(autouse=True)
def no_naps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("teraflock.cli.run.follow.time.sleep", lambda seconds: None)


def test_run_is_followed_to_its_end_while_the_server_restarts(capsys: pytest.CaptureFixture[str]) -> None:
    runs = Restarting()
    assert follow(SimpleNamespace(runs=runs), "job").state == "done"  # type: ignore[arg-type]
    assert capsys.readouterr().out == "one\ntwo\n"
    assert runs.refused == {"log 0", "log 4", "log 8", "get"}


def test_server_that_stays_away_is_reported_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    passed = iter(range(0, 10_000, 100))
    monkeypatch.setattr("teraflock.cli.run.follow.time.monotonic", lambda: next(passed))

    def never(*_: object) -> None:
        raise Unavailable("The server does not answer", hint="")

    with pytest.raises(Unavailable):
        follow(SimpleNamespace(runs=SimpleNamespace(log=never)), "job")  # type: ignore[arg-type]
