"""What the documents say is what the program does."""

import re

import pytest
from tests.documents.transcripts import DOCUMENTS, ROOT, printed_by, transcripts

from teraflock.offer.importers.own import NEEDED, OPTIONAL
from teraflock.offer.model import FLAGS

COMMANDS = [pytest.param(*each, id=each[0]) for document in DOCUMENTS for each in transcripts(document)]


@pytest.mark.parametrize(("command", "printed"), COMMANDS)
def test_a_transcript_is_what_the_command_prints(command: str, printed: str) -> None:
    assert printed_by(command) == printed
    assert "went wrong" not in printed


def test_there_are_transcripts() -> None:
    assert len(COMMANDS) >= 3


def test_every_flag_and_column_is_documented() -> None:
    text = (ROOT / "docs" / "offers-csv.md").read_text("utf-8")
    assert [flag for flag in FLAGS if f"| `{flag}` | {FLAGS[flag]} |" not in text] == []
    assert [column for column in (*NEEDED, *OPTIONAL) if f"`{column}`" not in text] == []


def test_the_map_names_every_folder() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text("utf-8")
    folders = [
        path.name for path in (ROOT / "src" / "teraflock").iterdir() if (path / "__init__.py").exists()
    ]
    assert sorted(folders) == sorted(re.findall(r"^      (\w+)/ ", text, re.MULTILINE))


def test_decisions_are_numbered_without_a_gap() -> None:
    numbers = sorted(int(path.name[:4]) for path in (ROOT / "docs" / "decisions").glob("*.md"))
    assert numbers == list(range(1, len(numbers) + 1))
