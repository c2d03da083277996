"""Every message of the console exists in every language, and no catalog has others."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from teraflock.base.errors import error_classes
from teraflock.console.language import (
    CHINESE,
    ENGLISH,
    JAPANESE,
    NAMES,
    Language,
    as_code,
    chosen,
    error_catalog,
    load_languages,
)
from teraflock.console.spoken import SPOKEN

CONSOLE = Path(__file__).parents[2] / "src" / "teraflock" / "console"
IN_TEMPLATES = re.compile(r'\bt\(\s*"((?:[^"\\]|\\.)+)"')
FIELD = re.compile(r"\{(\w+)\}")
CODE = re.compile("`[^`]+`")
SPOKEN_BY_PAGES = ("console", "tenant/session", "tenant/sign_up", "tenant/identity")
"""The errors of these folders must be translated. Others may be."""


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


TRANSLATED = [code for code in NAMES if code != ENGLISH]


@pytest.mark.parametrize("code", TRANSLATED)
def test_a_catalog_has_exactly_the_messages_of_the_console(code: str) -> None:
    files = [path.read_bytes() for path in sorted((CONSOLE / "catalogs").glob(f"{code}.*json"))]
    parts = [msgspec.json.decode(content, type=dict[str, str]) for content in files]
    catalog = {message: text for part in parts for message, text in part.items()}
    assert len(catalog) == sum(map(len, parts)), "a message is in two files"
    assert sorted(messages() - set(catalog)) == [], "not translated"
    assert sorted(set(catalog) - messages()) == [], "not used any more"
    for message, translated in catalog.items():
        assert sorted(FIELD.findall(message)) == sorted(FIELD.findall(translated)), message
        assert sorted(CODE.findall(message)) == sorted(CODE.findall(translated)), (
            f"commands differ: {message}"
        )


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
        ("", "ja-JP,ja;q=0.9,en-US;q=0.8", JAPANESE),
        ("ja", "zh-CN", JAPANESE),
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
    assert Language(ENGLISH, {}, {}).text("No such message") == "No such message"


def sentences(*folders: str) -> set[str]:
    """Sentences of errors, with `{a}`, `{b}` in place of values."""
    errors = {each.__name__ for each in error_classes()}
    found = set()
    for folder in folders:
        for path in sorted((CONSOLE.parent / folder).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text("utf-8"))):
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in errors:
                    found |= {template(node.args[0])}
    return found - {""}


def template(node: ast.AST) -> str:
    if isinstance(node, ast.JoinedStr):
        letters = iter("abcdefghijklmnopqrstuvwxyz")
        parts = (
            each.value if isinstance(each, ast.Constant) else f"{{{next(letters, 'z')}}}"
            for each in node.values
        )
        return "".join(map(str, parts))
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


@pytest.mark.parametrize("code", TRANSLATED)
def test_errors_of_pages_are_translated(code: str) -> None:
    catalog = error_catalog(code)
    assert sorted(sentences(*SPOKEN_BY_PAGES) - set(catalog)) == []


@pytest.mark.parametrize("code", TRANSLATED)
def test_translated_errors_keep_their_values(code: str) -> None:
    """Errors of other folders may be reworded at any time. They are shown in English then, until this is mended."""
    assert sorted(error_catalog(code)) == sorted(error_catalog(CHINESE)), "translated in one language only"
    for message, translated in error_catalog(code).items():
        assert sorted(FIELD.findall(message)) == sorted(FIELD.findall(translated)), message


def test_an_error_is_recognised_by_the_words_around_its_values() -> None:
    chinese = load_languages()[CHINESE]
    assert chinese.say("The project has no instance `a {b} <c>`") == "项目中没有实例 `a {b} <c>`"
    assert chinese.say("The bid is missing") == "缺少出价"
    assert chinese.say("Nobody says this") == "Nobody says this"
    assert load_languages()[ENGLISH].say("The bid is missing") == "The bid is missing"


def test_words_without_a_translation_are_quoted() -> None:
    chinese, english = load_languages()[CHINESE], load_languages()[ENGLISH]
    assert (
        chinese.said("Quota `L-1` exceeded <b>")
        == '<q lang="en">Quota <code>L-1</code> exceeded &lt;b&gt;</q>'
    )
    assert chinese.said("The bid is missing") == "缺少出价"
    assert english.said("Quota <b> exceeded") == "Quota &lt;b&gt; exceeded"


@given(st.text())
def test_any_text_can_be_said_and_shown(text: str) -> None:
    said = load_languages()[CHINESE].say(text)
    assert "<script" not in as_code(said).lower()
    assert as_code(said).count("<code>") == as_code(said).count("</code>")
