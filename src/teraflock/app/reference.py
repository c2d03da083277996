"""Generates the pages of docs/ that come from the code: settings, error codes, the API.

`python -m teraflock.app.reference` writes them. A test fails if one is out of date.
"""

import ast
import inspect
from collections.abc import Callable, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Final, Literal, get_args, get_origin

import msgspec

from teraflock.api.errors import STATUS_BY_CODE, WHAT_TO_DO
from teraflock.api.openapi import document_json
from teraflock.app import settings as settings_module
from teraflock.app.settings import Settings, variable

_SETTINGS_HEAD: Final = """# Settings of the server

`tera serve` reads `cloud/settings.toml` in the home folder (`TERA_HOME`), then environment variables, which take
precedence. Unknown names and invalid values are errors. This page is generated from `src/teraflock/app/settings.py`.

```toml
listen = "127.0.0.1:8372"
engine = "simulated"
rate_per_second = 500
```

| setting | environment | default | what it does |
|---|---|---|---|
"""

_ERRORS_HEAD: Final = """# Error codes

Every API error is `application/problem+json` with a stable `code`, a sentence (`detail`), a `hint` and a `request_id`,
which is also in the server's log. This page is generated from `src/teraflock/api/errors.py`.

| code | status | what to do |
|---|---|---|
"""


def settings_page() -> str:
    sentences = _sentences(Settings)
    return _SETTINGS_HEAD + "".join(
        f"| `{field.name}` | `{variable(field.name)}` | {_default(field.default)} |"
        f" {sentences[field.name]}{_choices(field.type)} |\n"
        for field in msgspec.structs.fields(Settings)
    )


def errors_page() -> str:
    return _ERRORS_HEAD + "".join(
        f"| `{code}` | {status} | {WHAT_TO_DO.get(code) or WHAT_TO_DO[str(status)]} |\n"
        for code, status in sorted(STATUS_BY_CODE.items(), key=lambda each: (each[1], each[0]))
    )


PAGES: Final[Mapping[str, Callable[[], str]]] = {
    "settings.md": settings_page,
    "errors.md": errors_page,
    "openapi.json": document_json,
}


def _sentences(struct: type[msgspec.Struct]) -> dict[str, str]:
    """The docstring of each field of a struct, which Python does not keep."""
    tree = ast.parse(inspect.getsource(settings_module))
    body = next(
        node.body for node in tree.body if isinstance(node, ast.ClassDef) and node.name == struct.__name__
    )
    return {
        field.target.id: " ".join(text.value.value.split())
        for field, text in pairwise(body)
        if isinstance(field, ast.AnnAssign)
        and isinstance(field.target, ast.Name)
        and isinstance(text, ast.Expr)
        and isinstance(text.value, ast.Constant)
        and isinstance(text.value.value, str)
    }


def _default(value: object) -> str:
    if value in ("", msgspec.NODEFAULT):  # NODEFAULT: an empty table, which msgspec creates with a factory
        return "empty"
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def _choices(kind: object) -> str:
    return (
        f" One of {', '.join(f'`{each}`' for each in get_args(kind))}." if get_origin(kind) is Literal else ""
    )


def write(folder: Path) -> None:
    for name, page in PAGES.items():
        (folder / name).write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    write(Path(__file__).parents[3] / "docs")
