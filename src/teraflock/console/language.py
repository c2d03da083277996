"""The languages of the console: message catalogs, and the choice between them.

Messages are written in English in the code; the catalog of another language maps them. A message without a translation
is shown in English; a test fails for every one.
"""

import re
from collections.abc import Mapping
from functools import cached_property
from importlib.resources import files
from typing import Final

import msgspec
from markupsafe import Markup, escape

ENGLISH: Final = "en"
CHINESE: Final = "zh"
JAPANESE: Final = "ja"
NAMES: Final[Mapping[str, str]] = {ENGLISH: "English", CHINESE: "简体中文", JAPANESE: "日本語"}
TAGS: Final[Mapping[str, str]] = {ENGLISH: "en", CHINESE: "zh-Hans", JAPANESE: "ja"}
"""For the `lang` attribute."""
_RANGES_MAX: Final = 20
_CODE: Final = re.compile("`([^`]+)`")
_RANGE: Final = re.compile(
    r"\s*([A-Za-z]{1,8})(?:-[A-Za-z0-9-]{1,40})?\s*(?:;\s*q\s*=\s*([01](?:\.\d{0,3})?))?\s*"
)


class Language:
    def __init__(self, code: str, messages: Mapping[str, str], errors: Mapping[str, str]) -> None:
        self.code = code
        self.tag = TAGS[code]
        self._messages = messages
        self._catalog = errors

    @cached_property
    def _errors(self) -> list[tuple[re.Pattern[str], str]]:
        """Compiled when the first error is shown: hundreds of patterns would delay the start of the server."""
        return [(_pattern(each), translated) for each, translated in self._catalog.items()]

    def text(self, message: str, /, **values: object) -> Markup:
        """The message in this language. `{name}` in it is replaced, and values are escaped."""
        found = escape(self._messages.get(message, message))
        return found.format(**values) if values else found

    def marked(self, message: str, /, **values: object) -> Markup:
        """Like `text`, for the content of elements: what is between backticks in the message becomes code."""
        found = as_code(self._messages.get(message, message))
        return found.format(**values) if values else found

    def changes(self, text: str) -> str:
        """An event such as `queued → starting`: the words that are known are translated."""
        return " → ".join(self._messages.get(word, word) for word in text.split(" → "))

    def say(self, sentence: str) -> str:
        """A sentence of an error in this language. It has values already, so it is recognised by the words around
        them. An unknown sentence stays in English."""
        for pattern, translated in self._errors:
            if found := pattern.fullmatch(sentence):
                return translated.format(**found.groupdict())
        return sentence

    def said(self, sentence: str) -> Markup:
        """A sentence of the server or a provider, to show. What has no translation is marked as quoted English."""
        found = self.say(sentence)
        if self.code == ENGLISH or found != sentence:
            return as_code(found)
        return Markup('<q lang="en">{}</q>').format(as_code(sentence))


def as_code(text: str) -> Markup:
    """Escaped text, with code instead of backticks."""
    return Markup(_CODE.sub(r"<code>\1</code>", str(escape(text))))  # noqa: S704  it is escaped before


def load_languages() -> Mapping[str, Language]:
    return {code: Language(code, _catalog(code), error_catalog(code)) for code in NAMES}


def chosen(cookie: str, accepted: str) -> str:
    """The language that the reader chose, otherwise the one that the browser prefers."""
    if cookie in NAMES:
        return cookie
    best, best_weight = ENGLISH, 0.0
    for part in accepted.split(",")[:_RANGES_MAX]:
        found = _RANGE.fullmatch(part)
        if found and found[1].lower() in NAMES and (weight := float(found[2] or 1)) > best_weight:
            best, best_weight = found[1].lower(), weight
    return best


def error_catalog(code: str) -> Mapping[str, str]:
    """Sentences and hints of errors, with `{a}` in place of values."""
    if code == ENGLISH:
        return {}
    file = files("teraflock.console") / "catalogs" / f"errors.{code}.json"
    return msgspec.json.decode(file.read_bytes(), type=dict[str, str])


def _pattern(message: str) -> re.Pattern[str]:
    return re.compile(re.sub(r"\\\{(\w)\\\}", r"(?P<\1>.{0,120}?)", re.escape(message)), re.DOTALL)


def _catalog(code: str) -> Mapping[str, str]:
    if code == ENGLISH:
        return {}
    found: dict[str, str] = {}
    for file in (files("teraflock.console") / "catalogs").iterdir():
        if file.name.startswith(f"{code}."):  # `zh.json`, `ja.json`, and one more file for each large section
            found |= msgspec.json.decode(file.read_bytes(), type=dict[str, str])
    return found
