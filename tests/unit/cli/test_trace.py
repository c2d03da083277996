"""`tera trace` without PyTorch: where it writes, and words that do not belong together."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from teraflock.base.errors import BadInput
from teraflock.cli.trace import _write, command


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["train.py", "-o", "nowhere/job.trace"], "cannot be written: there is no such folder"),
        (["train.py", "-o", "."], "cannot be written: it is a folder"),
        (["nothing.py", "-o", "job.trace"], "File not found"),
        (["-o", "job.trace"], "Give either a script, `-m module` or"),
        (["-m", "job", "--entry", "job:main", "-o", "job.trace"], "Give either"),
    ],
)
def test_wrong_words_are_refused_before_the_script_runs(
    words: list[str], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text("raise SystemExit('it ran')")
    if "-m" in words and "--entry" in words:
        words = ["train.py", *words]
    with pytest.raises(BadInput, match=says):
        CliRunner().invoke(command, words, standalone_mode=False, catch_exceptions=False)


def test_a_trace_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    out = tmp_path / "job.trace"
    _write(out, b"old")
    _write(out, b"new")
    assert [each.name for each in tmp_path.iterdir()] == ["job.trace"]
    assert out.read_bytes() == b"new"
    for place in ("/dev/full", "/proc/job.trace"):
        with pytest.raises(BadInput, match="cannot be written"):
            _write(Path(place), b"x")
    assert Path("/dev/full").is_char_device()
