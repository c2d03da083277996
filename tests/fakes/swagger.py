"""Judges requests and replies by Swagger 2 descriptions (Google and Azure), which openapi-core does not read.

Unknown fields of requests are refused: every definition is closed before it judges.
"""

import re
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.fakes.exchange import Exchange
from tests.fakes.judge import specs_folder

Change = Callable[[Any], Any]


def swagger_judge(*names: str, drop: Change = lambda body: body) -> "SwaggerJudge":
    """The judge with some descriptions. `drop` removes from a request what is newer than they are."""
    folder = specs_folder()
    for name in names:
        if not (Path(folder) / name).exists():
            pytest.skip(f"the provider's description `{name}` is not at hand")
    return SwaggerJudge([_loaded(str(Path(folder) / name)) for name in names], drop)


@cache
def _loaded(path: str) -> Any:
    content = Path(path).read_bytes()
    if path.endswith(".json"):
        spec = msgspec.json.decode(content)
    else:
        import yaml

        spec = yaml.load(content, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    spec = _without_other_files(spec)
    bases = {
        part["$ref"]
        for each in spec["definitions"].values()
        for part in each.get("allOf", ())
        if "$ref" in part
    }
    for name, each in spec["definitions"].items():
        is_part = "allOf" in each or f"#/definitions/{name}" in bases
        if "properties" in each and not is_part and "additionalProperties" not in each:
            each["additionalProperties"] = False
    return spec


def _without_other_files(value: Any) -> Any:
    """References to files that are not at hand accept anything."""
    if isinstance(value, dict):
        is_elsewhere = str(value.get("$ref", "")).startswith("./")
        return {} if is_elsewhere else {name: _without_other_files(each) for name, each in value.items()}
    return [_without_other_files(each) for each in value] if isinstance(value, list) else value


class SwaggerJudge:
    def __init__(self, specs: list[Any], drop: Change) -> None:
        self._specs = specs
        self._drop = drop
        self.judged = 0

    def check(self, exchange: Exchange) -> None:
        method, path, query, _, content, status, _, body = exchange
        spec, item, values = self._found(path)
        operation = item.get(method.lower())
        assert operation is not None, f"{method} {path} is not in the description"
        parameters = [
            _resolved(spec, each) for each in [*item.get("parameters", []), *operation["parameters"]]
        ]
        query = self._drop(dict(query))
        self._request(
            spec, parameters, query, values, self._drop(msgspec.json.decode(content)) if content else None
        )
        if status < 400 and status != 204 and body:
            said = operation["responses"].get(str(status), {})
            assert said or "default" in operation["responses"], f"{method} {path} never answers {status}"
            if "schema" in said:
                _valid(
                    spec,
                    said["schema"],
                    self._drop(msgspec.json.decode(body)),
                    f"reply of {path}",
                    closed=False,
                )
        self.judged += 1

    def _found(self, path: str) -> tuple[Any, Any, dict[str, str]]:
        for spec in self._specs:
            base = spec.get("basePath", "").rstrip("/")
            for template, item in spec["paths"].items():
                pattern = re.sub(r"\\\{(\w+)\\\}", r"(?P<\1>[^/]+)", re.escape(template))
                for begin in ("", base):
                    if found := re.fullmatch(f"{begin}{pattern}", path, re.IGNORECASE):
                        return spec, item, found.groupdict()
        raise AssertionError(f"no description has the path {path}")

    def _request(
        self, spec: Any, parameters: list[Any], query: Mapping[str, str], values: Mapping[str, str], body: Any
    ) -> None:
        known = {each["name"]: each for each in parameters if each["in"] == "query"}
        assert not (unknown := set(query) - set(known)), f"unknown parameters: {sorted(unknown)}"
        missing = {name for name, each in known.items() if each.get("required") and name not in query}
        assert not missing, f"parameters are missing: {sorted(missing)}"
        for each in parameters:
            if each["in"] == "path" and "pattern" in each:
                assert re.fullmatch(each["pattern"], values[each["name"]]), (each["name"], values)
        wanted = next((each for each in parameters if each["in"] == "body"), None)
        assert (body is None) or wanted is not None, "a body that the description does not have"
        if wanted is not None and body is not None:
            _valid(spec, wanted["schema"], body, "request", closed=True)


def _resolved(spec: Any, each: Any) -> Any:
    if "$ref" not in each:
        return each
    found = spec
    for part in each["$ref"].removeprefix("#/").split("/"):
        found = found[part]
    return found


def _valid(spec: Any, schema: Any, value: Any, what: str, *, closed: bool) -> None:
    import jsonschema  # type: ignore[import-untyped]

    judged = {**schema, "definitions": spec["definitions"]}
    errors = list(jsonschema.Draft4Validator(judged).iter_errors(value))
    said = [f"{'/'.join(map(str, each.absolute_path))}: {each.message[:300]}" for each in errors]
    said = [each for each in said if closed or "Additional properties" not in each]
    assert not said, f"{what}: {said[:5]}"
