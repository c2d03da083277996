"""The languages of the console: message catalogs, and the choice between them.

Messages are written in English in the code; the catalog of another language maps them. A message without a translation
is shown in English; a test fails for every one.
"""

import re
from collections.abc import Mapping
from importlib.resources import files
from typing import Final

import msgspec
from markupsafe import Markup, escape

ENGLISH: Final = "en"
CHINESE: Final = "zh"
NAMES: Final[Mapping[str, str]] = {ENGLISH: "English", CHINESE: "简体中文"}
TAGS: Final[Mapping[str, str]] = {ENGLISH: "en", CHINESE: "zh-Hans"}
"""For the `lang` attribute."""
_RANGES_MAX: Final = 20
_RANGE: Final = re.compile(
    r"\s*([A-Za-z]{1,8})(?:-[A-Za-z0-9-]{1,40})?\s*(?:;\s*q\s*=\s*([01](?:\.\d{0,3})?))?\s*"
)


class Language:
    def __init__(self, code: str, messages: Mapping[str, str]) -> None:
        self.code = code
        self.tag = TAGS[code]
        self._messages = messages

    def text(self, message: str, /, **values: object) -> Markup:
        """The message in this language. `{name}` in it is replaced, and values are escaped."""
        found = escape(self._messages.get(message, message))
        return found.format(**values) if values else found


def load_languages() -> Mapping[str, Language]:
    return {code: Language(code, _catalog(code)) for code in NAMES}


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


def _catalog(code: str) -> Mapping[str, str]:
    if code == ENGLISH:
        return {}
    found: dict[str, str] = {}
    for file in (files("teraflock.console") / "catalogs").iterdir():
        if file.name.startswith(f"{code}."):  # `zh.json`, and one more file for each large section
            found |= msgspec.json.decode(file.read_bytes(), type=dict[str, str])
    return found
