"""schemathesis against the whole API: whatever the document allows is taken, whatever it does not is refused, no answer
is other than declared, and nothing makes the server stumble."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis.checks import load_all_checks
from schemathesis.generation.feedback import FeedbackSources
from schemathesis.pytest._test_builder import build_operation_test
from schemathesis.python._constants.orchestrator import make_constants_value_source
from tests.api.asking import House, Tenants, copied
from tests.long import sampled

from teraflock.api.openapi import document, document_json

SEED = 20261115
EXAMPLES = 15

CONFIG = {
    "seed": SEED,
    "headers": {},
    "checks": {
        # 422: well formed, but it cannot be, such as an image that nobody has; 409 and 404: not now, not there
        "positive_data_acceptance": {"expected-statuses": ["2xx", "403", "404", "409", "422"]},
        "negative_data_rejection": {
            "expected-statuses": ["400", "401", "403", "404", "405", "413", "415", "422"]
        },
    },
    "generation": {"allow-x00": True, "mode": "all"},
}


class Served:
    """What is asked: the document, and behind it the house of the test that runs."""

    house: House | None = None

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http" and scope["path"] == "/openapi.json":
            headers = [(b"content-type", b"application/json")]
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            await send({"type": "http.response.body", "body": document_json().encode()})
        elif scope["type"] == "http":
            assert self.house is not None
            await self.house.application.asgi(scope, receive, send)


SERVED = Served()
SCHEMA = schemathesis.openapi.from_asgi("/openapi.json", SERVED, config=schemathesis.Config.from_dict(CONFIG))
NAMES = {
    operation["operationId"] for methods in document()["paths"].values() for operation in methods.values()
}
ENDLESS = {"follow_events"}  # what it refuses is tested by the permissions


@pytest.fixture(scope="module")
def asked(furnished: tuple[Path, Tenants], tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    home, tenants = furnished
    SERVED.house = copied(home, tmp_path_factory.mktemp("schema") / "house")
    yield tenants.keys["operator"]
    SERVED.house.close()
    SERVED.house = None


@pytest.mark.parametrize(
    "name", sampled(sorted(NAMES - ENDLESS), every=12, because="dozens of requests for each operation")
)
def test_api_matches_its_document(name: str, asked: str) -> None:
    """Cases are made here and not by `SCHEMA.parametrize`, which makes them all while tests are collected."""

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
        config=SCHEMA.config,
        operation=SCHEMA.find_operation_by_id(name),
        test_func=answers,
        given_kwargs={},
        feedback=FeedbackSources(constants_value_source=make_constants_value_source(SCHEMA)),
    )()
