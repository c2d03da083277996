"""The generated pages are current, and the OpenAPI document is valid."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from teraflock.api.examples import EXAMPLES
from teraflock.api.openapi import document
from teraflock.api.routes.all import ROUTES
from teraflock.app.reference import PAGES

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("name", PAGES)
def test_generated_pages_are_current(name: str) -> None:
    assert (DOCS / name).read_text("utf-8") == PAGES[name](), "run `python -m teraflock.app.reference`"


def test_every_setting_is_documented() -> None:
    rows = [line for line in PAGES["settings.md"]().splitlines() if line.startswith("| `")]
    assert len(rows) > 10
    assert [row for row in rows if len(row.split("|")[4].strip()) < 20] == []


def test_server_accepts_every_example() -> None:
    by_name = {route.name: route for route in ROUTES}
    for name, examples in EXAMPLES.items():
        body = by_name[name].body
        assert body is not None
        for example in examples.values():
            msgspec.json.decode(msgspec.json.encode(example), type=body)


def test_every_operation_has_summary_unique_id_and_errors() -> None:
    operations = [each for methods in document()["paths"].values() for each in methods.values()]
    ids = [each["operationId"] for each in operations]
    assert len(ids) == len(set(ids)) == len(ROUTES)
    for operation in operations:
        assert operation["summary"]
        problems = {status for status in operation["responses"] if int(status) >= 400}
        assert {"400", "500", "503"} <= problems, operation["operationId"]
        if operation["security"]:
            assert {"401", "429"} <= problems, operation["operationId"]


def test_every_schema_reference_resolves() -> None:
    whole = document()

    def refs(value: Any) -> list[str]:
        if isinstance(value, dict):
            found = [value["$ref"]] if isinstance(value.get("$ref"), str) else []
            return found + [ref for each in value.values() for ref in refs(each)]
        return [ref for each in value for ref in refs(each)] if isinstance(value, list) else []

    known = {f"#/components/{kind}/{name}" for kind, named in whole["components"].items() for name in named}
    assert set(refs(whole)) <= known
