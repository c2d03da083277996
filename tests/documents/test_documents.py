"""What the documents say is what the program does."""

import re
from pathlib import Path

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


def test_the_map_is_short() -> None:
    assert len((ROOT / "ARCHITECTURE.md").read_text("utf-8").splitlines()) <= 120


def test_pages_for_contributors_name_files_that_exist() -> None:
    """`NOUN` and `NAME` are what you add."""
    chapters = [page for name in ("architecture", "adding") for page in (ROOT / "docs" / name).glob("*.md")]
    text = "".join(page.read_text("utf-8") for page in (ROOT / "ARCHITECTURE.md", *chapters))
    named = set(re.findall(r"`((?:[a-z_]+/)+[a-z_0-9]+\.py)`", text))
    assert len(named) > 20
    there = (ROOT, ROOT / "src" / "teraflock")
    assert sorted(name for name in named if not any((root / name).exists() for root in there)) == []


def test_decisions_are_numbered_without_a_gap() -> None:
    numbers = sorted(int(path.name[:4]) for path in (ROOT / "docs" / "decisions").glob("*.md"))
    assert numbers == list(range(1, len(numbers) + 1))


def test_the_glossary_defines_each_word_once() -> None:
    text = (ROOT / "docs" / "glossary.md").read_text("utf-8")
    rows = re.findall(r"^\| (\*\*.+?\*\*) \|", text, re.MULTILINE)
    words = [word for row in rows for word in re.findall(r"\*\*(.+?)\*\*", row)]
    assert len(words) > 40
    assert sorted(words) == sorted(set(words))


def test_the_glossary_has_every_state_role_and_purchase_mode() -> None:
    from teraflock.instance.states import Phase
    from teraflock.tenant.model import Role

    text = (ROOT / "docs" / "glossary.md").read_text("utf-8")
    assert [word for word in (*Role, *Phase) if f"`{word.value}`" not in text] == []


PAGES = sorted(path for path in (ROOT / "docs").rglob("*.md") if path.name != "README.md")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_index_of_the_documents_names_every_page(page: Path) -> None:
    docs = ROOT / "docs"
    text = (docs / "README.md").read_text("utf-8")
    assert f"]({page.relative_to(docs)})" in text


LINKING = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "lab").rglob("*.md")])


@pytest.mark.parametrize("page", LINKING, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_to_a_file_leads_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text("utf-8"))
    assert [target for target in targets if not (page.parent / target).exists()] == []


def test_tests_that_documents_name_exist() -> None:
    files = list((ROOT / "tests").rglob("test_*.py"))
    known = {path.name for path in files}
    functions = [
        name for path in files for name in re.findall(r"^def (test_\w+)", path.read_text("utf-8"), re.M)
    ]
    for page in LINKING:
        for name, end in re.findall(r"`(?:tests/[\w/]*/)?(test_\w+)(…|\.py)?`", page.read_text("utf-8")):
            if end == ".py":
                assert f"{name}.py" in known, (page.name, name)
            else:
                assert any(each.startswith(name) for each in functions), (page.name, name)


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text("utf-8").splitlines()) <= 150
