"""Every message of the console exists in every language, and no catalog has others."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from teraflock.console.language import CHINESE, ENGLISH, NAMES, Language, chosen, load_languages
from teraflock.console.spoken import SPOKEN

CONSOLE = Path(__file__).parents[2] / "src" / "teraflock" / "console"
IN_TEMPLATES = re.compile(r'\bt\(\s*"((?:[^"\\]|\\.)+)"')
FIELD = re.compile(r"\{(\w+)\}")


def messages() -> set[str]:
    found = set(SPOKEN)
    for path in sorted((CONSOLE / "templates").rglob("*.html")):
        found |= set(IN_TEMPLATES.findall(path.read_text("utf-8")))
    for path in sorted((CONSOLE / "pages").glob("*.py")):
        found |= set(in_code(path.read_text("utf-8")))
    return found


def in_code(text: str) -> Iterator[str]:
    """The messages in `call.done(address, "…")` and `call.text("…")`."""
    for node in ast.walk(ast.parse(text)):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
            continue
        if not (isinstance(node.func.value, ast.Name) and node.func.value.id == "call"):
            continue
        place = {"done": 1, "text": 0}.get(node.func.attr)
        if place is not None:
            message = node.args[place]
            assert isinstance(message, ast.Constant), f"line {node.lineno}: a message must be written out"
            yield str(message.value)


@pytest.mark.parametrize("code", [code for code in NAMES if code != ENGLISH])
def test_a_catalog_has_exactly_the_messages_of_the_console(code: str) -> None:
    files = [path.read_bytes() for path in sorted((CONSOLE / "catalogs").glob(f"{code}.*json"))]
    parts = [msgspec.json.decode(content, type=dict[str, str]) for content in files]
    catalog = {message: text for part in parts for message, text in part.items()}
    assert len(catalog) == sum(map(len, parts)), "a message is in two files"
    assert sorted(messages() - set(catalog)) == [], "not translated"
    assert sorted(set(catalog) - messages()) == [], "not used any more"
    for message, translated in catalog.items():
        assert sorted(FIELD.findall(message)) == sorted(FIELD.findall(translated)), message


def test_the_search_finds_messages_of_templates_and_code() -> None:
    assert {
        "Launch an instance",
        "Delete {name}?",
        "Stopping {name}. Its disk is kept",
        "running",
    } <= messages()


def test_values_are_escaped() -> None:
    for language in load_languages().values():
        shown = language.text("Delete {name}?", name="<script>alert(1)</script>")
        assert "<script" not in shown
        assert "&lt;script&gt;" in shown


@pytest.mark.parametrize(
    ("cookie", "accepted", "expected"),
    [
        ("", "", ENGLISH),
        ("", "zh-CN,zh;q=0.9,en;q=0.8", CHINESE),
        ("", "en-GB,en;q=0.9,zh;q=0.8", ENGLISH),
        ("", "fr-FR,fr;q=0.9", ENGLISH),
        ("", "de, zh-Hans;q=0.3", CHINESE),
        ("en", "zh-CN", ENGLISH),
        ("zh", "en", CHINESE),
        ("xx", "zh", CHINESE),
    ],
)
def test_the_reader_chooses_the_language_before_the_browser(
    cookie: str, accepted: str, expected: str
) -> None:
    assert chosen(cookie, accepted) == expected


@given(st.text(), st.text())
def test_any_header_gives_a_language(cookie: str, accepted: str) -> None:
    assert chosen(cookie, accepted) in NAMES


def test_an_unknown_message_is_shown_as_it_is() -> None:
    assert Language(ENGLISH, {}).text("No such message") == "No such message"
