"""Judges requests and replies by tables of the fields, types and values that the models of a provider's SDK have.

The tables are in `models/`, one for each cloud. `tests/vendors/read_models.py` reads them from the SDKs, and says there
how types are written; that of Genesis was written from the types of the provider's own client.
"""

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
from tests.fakes.exchange import Exchange

BLANKS: dict[str, Any] = {"text": "", "whole": 0, "number": 0.0, "flag": False, "any": {}}


class Said(msgspec.Struct, frozen=True, kw_only=True):
    """What an SDK says about a call. Types are those of the tables; empty: no body."""

    query: str = ""
    """The names of its parameters."""
    request: str = ""
    reply: str = ""


@cache
def models_of(cloud: str) -> dict[str, dict[str, str]]:
    content = (Path(__file__).parent / "models" / f"{cloud}.json").read_bytes()
    found: dict[str, dict[str, str]] = msgspec.json.decode(content)["models"]
    return found


class ModelJudge:
    def __init__(self, cloud: str, calls: Mapping[str, Said]) -> None:
        """`calls` are by method and path, such as `GET /instances/{id}`, or by the name of an action."""
        self._models = models_of(cloud)
        self._calls = {re.compile(re.sub(r"\{\w+\}", "[^/]+", name)): said for name, said in calls.items()}
        self.judged = 0
        self.used: set[str] = set()

    def check(self, exchange: Exchange) -> None:
        method, path, query, headers, content, status, _, body = exchange
        line = headers.get("x-acs-action") or f"{method} {path}"
        found = [(name, said) for name, said in self._calls.items() if name.fullmatch(line)]
        assert found, f"no SDK makes the call {line}"
        name, said = found[0]
        if "x-acs-action" not in headers:
            assert not (unknown := set(query) - set(said.query.split())), (
                f"{line}: unknown parameters {sorted(unknown)}"
            )
        self._check(said.request, msgspec.json.decode(content) if content else None, f"request {line}")
        if status < 400:
            self._check(said.reply, msgspec.json.decode(body) if body else None, f"reply {line}")
        self.judged += 1
        self.used.add(name.pattern)

    def _check(self, type: str, value: Any, at: str) -> None:
        if not type:
            assert value is None, f"{at}: a body that the SDK does not have"
            return
        problem = mismatch(self._models, type, value)
        assert not problem, f"{at}: {problem}"


def mismatch(models: Mapping[str, Mapping[str, str]], type: str, value: Any) -> str:
    """Why a value is not of a type; empty: it is."""
    type = type.removesuffix("!")
    if type.endswith("?") and value is None:
        return ""
    type = type.removesuffix("?")
    if type.startswith("["):
        return _of_list(models, type[1:-1], value)
    if type.startswith("{"):
        return _of_list(models, type[1:-1], list(value.values()) if isinstance(value, dict) else value)
    if type in models:
        return _of_model(models, type, value)
    if "|" in type:
        return "" if value in type.split("|") else f"{value!r} is none of {type}"
    fits = {
        "text": isinstance(value, str),
        "whole": isinstance(value, int) and not isinstance(value, bool),
        "number": isinstance(value, int | float) and not isinstance(value, bool),
        "flag": isinstance(value, bool),
        "any": True,
    }[type]
    return "" if fits else f"{value!r} is not {type}"


def _of_list(models: Mapping[str, Mapping[str, str]], type: str, value: Any) -> str:
    if not isinstance(value, list):
        return f"{value!r} is not a list or mapping"
    return next(filter(None, (mismatch(models, type, each) for each in value)), "")


def _of_model(models: Mapping[str, Mapping[str, str]], name: str, value: Any) -> str:
    if not isinstance(value, dict):
        return f"{value!r} is not a {name}"
    fields = models[name]
    if unknown := sorted(set(value) - set(fields)):
        return f"{name} has no {', '.join(unknown)}"
    if missing := sorted(key for key, type in fields.items() if type.endswith("!") and key not in value):
        return f"{name} lacks {', '.join(missing)}"
    for key, each in value.items():
        if each is None and not fields[key].endswith("!"):
            continue
        if problem := mismatch(models, fields[key], each):
            return f"{name}.{key}: {problem}"
    return ""


def filled(cloud: str, type: str, value: Mapping[str, Any]) -> dict[str, Any]:
    """A value with blanks for the fields that a model must have and that no driver of ours reads."""
    fields = models_of(cloud)[type]
    blanks = {
        key: _blank(cloud, each[:-1])
        for key, each in fields.items()
        if each.endswith("!") and key not in value
    }
    return {**blanks, **value}


def _blank(cloud: str, type: str) -> Any:
    if type.endswith("?"):
        return None
    if type.startswith("["):
        return []
    if "|" in type:
        return type.partition("|")[0]
    return filled(cloud, type, {}) if type in models_of(cloud) else BLANKS.get(type, {})
