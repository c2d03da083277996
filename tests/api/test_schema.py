"""schemathesis tests of the whole API: the server accepts what the document allows, refuses the rest, sends only
declared responses, and never fails with a server error."""

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis.checks import load_all_checks
from schemathesis.generation.feedback import FeedbackSources
from schemathesis.pytest._test_builder import build_operation_test
from schemathesis.python._constants.orchestrator import make_constants_value_source
from tests.api.asking import ApiServer, Tenants, copied
from tests.long import sampled

from teraflock.api.openapi import document_json
from teraflock.api.routes.all import ROUTES

SEED = 20261115
EXAMPLES = 15

CONFIG = {
    "seed": SEED,
    "headers": {},
    "checks": {
        # 422: well-formed but impossible, such as an unknown image; 409 and 404: a conflict, or not found
        "positive_data_acceptance": {"expected-statuses": ["2xx", "403", "404", "409", "422"]},
        "negative_data_rejection": {
            "expected-statuses": ["400", "401", "403", "404", "405", "413", "415", "422"]
        },
    },
    "generation": {"allow-x00": True, "mode": "all"},
}


class Served:
    """The tested application: the document, and the server of the current test."""

    server: ApiServer | None = None

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http" and scope["path"] == "/openapi.json":
            headers = [(b"content-type", b"application/json")]
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            await send({"type": "http.response.body", "body": document_json().encode()})
        elif scope["type"] == "http":
            assert self.server is not None
            await self.server.application.asgi(scope, receive, send)


SERVED = Served()
NAMES = {route.name for route in ROUTES}
ENDLESS = {"follow_events"}  # refusals are tested in test_permissions.py


@cache
def schema() -> Any:
    config = schemathesis.Config.from_dict(CONFIG)
    return schemathesis.openapi.from_asgi("/openapi.json", SERVED, config=config)


@pytest.fixture(scope="module")
def asked(furnished: tuple[Path, Tenants], tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    home, tenants = furnished
    SERVED.server = copied(home, tmp_path_factory.mktemp("schema") / "server")
    yield tenants.keys["operator"]
    SERVED.server.close()
    SERVED.server = None


@pytest.mark.parametrize(
    "name", sampled(sorted(NAMES - ENDLESS), every=12, because="dozens of requests for each operation")
)
def test_api_matches_its_document(name: str, asked: str) -> None:
    """Cases are generated here, because `parametrize` of schemathesis generates them all during collection."""

    @settings(
        max_examples=EXAMPLES,
        derandomize=True,
        database=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    def answers(case: Any) -> None:
        case.call_and_validate(headers={"Authorization": f"Bearer {asked}"})

    load_all_checks()
    build_operation_test(
        config=schema().config,
        operation=schema().find_operation_by_id(name),
        test_func=answers,
        given_kwargs={},
        feedback=FeedbackSources(constants_value_source=make_constants_value_source(schema())),
    )()
