"""Judges requests and replies by the provider's own API description, where one is at hand.

The descriptions are not part of this repository. `TERA_PROVIDER_SPECS` names the folder that has them.
"""

import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.fakes.exchange import Exchange

SPECS = "TERA_PROVIDER_SPECS"


def specs_folder() -> str:
    """The folder with the providers' descriptions. Skips the test if there is none."""
    folder = os.environ.get(SPECS, "")
    if not folder:
        pytest.skip(f"the providers' descriptions are not at hand: set {SPECS} to the folder that has them")
    return folder


def judge_for(name: str, change: Callable[[Any], Any] = lambda spec: spec, prefix: str = "") -> "Judge":
    """The judge with a description. Skips the test if there is none."""
    path = Path(specs_folder()) / name
    if not path.exists():
        pytest.skip(f"the provider's description `{name}` is not at hand")
    return Judge(_loaded(str(path), change), prefix)


@cache
def _loaded(path: str, change: Callable[[Any], Any]) -> Any:
    from openapi_core import OpenAPI

    content = Path(path).read_bytes()
    if path.endswith(".json"):
        spec = msgspec.json.decode(content)
    else:
        import yaml

        spec = yaml.load(content, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    return OpenAPI.from_dict(change(spec))


class Judge:
    def __init__(self, api: Any, prefix: str) -> None:
        """`prefix` is the part of the path that our base URL has."""
        self._api = api
        self._prefix = prefix
        self.judged = 0

    def check(self, exchange: Exchange) -> None:
        from openapi_core.testing import MockRequest, MockResponse

        server = self._api.spec["servers"][0]["url"] if "servers" in self._api.spec else "http://localhost"
        request = MockRequest(
            server.rstrip("/"),
            exchange.method.lower(),
            f"{self._prefix}{exchange.path}",
            args=dict(exchange.query),
            headers=dict(exchange.headers),
            data=exchange.content,
            content_type="application/json",
        )
        self._api.validate_request(request)
        response = MockResponse(exchange.body, status_code=exchange.status, content_type="application/json")
        self._api.validate_response(request, response)
        self.judged += 1
