"""The pages of docs/ that are generated from the code: settings, error codes, the API.

`python -m teraflock.app.reference` writes them; a test fails when one is out of date.
"""

import ast
import inspect
import re
from collections.abc import Callable, Mapping
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Final, Literal, get_args, get_origin

import msgspec

import teraflock
from teraflock.api.errors import status_of_class
from teraflock.api.openapi import document_json
from teraflock.api.routes.all import ROUTES
from teraflock.app import settings as settings_module
from teraflock.app.settings import Settings, variable
from teraflock.base.errors import TeraflockError, error_classes

_SETTINGS_HEAD: Final = """# Settings of the server

`tera serve` reads `cloud/settings.toml` in the home folder (`TERA_HOME`). Environment variables override the file.
Unknown names and invalid values are errors. This page is generated from `src/teraflock/app/settings.py`.

```toml
listen = "127.0.0.1:8372"
engine = "simulated"
rate_per_second = 500
```

| setting | environment | default | what it does |
|---|---|---|---|
"""

_ERRORS_HEAD: Final = """# Error codes

Every error of the API is `application/problem+json`:

- `code` is one of the codes below and does not change between versions.
- `detail` is one sentence about what happened, and `hint` is the next step.
- `request_id` finds the request in the server's log.

`tera` prints the same sentence and hint on stderr and ends with the exit code below. This page is generated from the
error classes in `src/teraflock`.

| code | HTTP status | exit code | meaning | what to do |
|---|---|---|---|---|
"""

_OTHER_ERRORS_HEAD: Final = """
## Codes outside the API

`tera` produces these itself, or the server keeps them as the reason why an instance or image failed.

| code | exit code | meaning | what to do |
|---|---|---|---|
"""

_WITHOUT_A_ROUTE: Final = ("method_not_allowed", "not_found", "malformed_request", "internal_error")
"""What the server answers where no route is found."""
_OWN_CODE: Final = re.compile(r'^    code(: ClassVar\[str\])? = "', re.MULTILINE)


def settings_page() -> str:
    sentences = _sentences(Settings)
    return _SETTINGS_HEAD + "".join(
        f"| `{field.name}` | `{variable(field.name)}` | {_default(field.default)} |"
        f" {sentences[field.name]}{_choices(field.type)} |\n"
        for field in msgspec.structs.fields(Settings)
    )


def errors_page() -> str:
    load_error_classes()
    by_code: dict[str, type[TeraflockError]] = {}
    for kind in error_classes():
        if "code" in vars(kind) and kind.__module__.startswith("teraflock."):
            by_code.setdefault(kind.code, kind)
    sent = [kind for code, kind in by_code.items() if code in codes_of_api()]
    sent.sort(key=lambda kind: (status_of_class(kind), kind.code))
    other = sorted((kind for kind in by_code.values() if kind not in sent), key=lambda kind: kind.code)
    return (
        _ERRORS_HEAD
        + "".join(f"| `{kind.code}` | {status_of_class(kind)} | {_error_cells(kind)} |\n" for kind in sent)
        + _OTHER_ERRORS_HEAD
        + "".join(f"| `{kind.code}` | {_error_cells(kind)} |\n" for kind in other)
    )


def codes_of_api() -> frozenset[str]:
    """Every code that a response of the server can have."""
    return frozenset(_WITHOUT_A_ROUTE).union(*(route.codes for route in ROUTES))


def load_error_classes() -> None:
    """Import every module that defines an error with a code of its own."""
    root = Path(teraflock.__path__[0])
    for path in sorted(root.rglob("*.py")):
        if _OWN_CODE.search(path.read_text("utf-8")):
            import_module(".".join(("teraflock", *path.relative_to(root).with_suffix("").parts)))


def _error_cells(kind: type[TeraflockError]) -> str:
    meaning = " ".join((kind.__doc__ or "").partition("\n\n")[0].split())
    return f"{kind.exit_code} | {meaning} | {kind.remedy}"


PAGES: Final[Mapping[str, Callable[[], str]]] = {
    "settings.md": settings_page,
    "errors.md": errors_page,
    "openapi.json": document_json,
}


def _sentences(struct: type[msgspec.Struct]) -> dict[str, str]:
    """The text under each field of a struct, which Python itself throws away."""
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
    return (
        f"`{str(value).lower() if isinstance(value, bool) else value}`" if value not in ("", {}) else "empty"
    )


def _choices(kind: object) -> str:
    return (
        f" One of {', '.join(f'`{each}`' for each in get_args(kind))}." if get_origin(kind) is Literal else ""
    )


def write(folder: Path) -> None:
    for name, page in PAGES.items():
        (folder / name).write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    write(Path(__file__).parents[3] / "docs")
