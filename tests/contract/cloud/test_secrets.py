"""Credentials of every cloud: not in first-boot files, marks, logs or errors, whatever a provider repeats."""

from pathlib import Path
from typing import Any

import pytest
from tests.contract.cloud.direct import Direct
from tests.contract.cloud.ground import KINDS, MORE

from teraflock.base.errors import TeraflockError
from teraflock.instance.driver import Handle

ALL = sorted({**KINDS, **MORE})
PARTS_MIN = 8
"""Shorter parts of credentials are names, such as those of accounts."""


@pytest.fixture(params=ALL)
def cloud(request: pytest.FixtureRequest, tmp_path: Path) -> Direct:
    return Direct(request.param, tmp_path)


def secrets_of(cloud: Direct) -> set[str]:
    """What must stay secret: what the signer hides, and each line of it."""
    hidden = cloud.site._ask.__self__._signer._secrets  # type: ignore[attr-defined]
    lines = {line for each in hidden for line in each.splitlines()} | set(hidden)
    return {each for each in lines if len(each) >= PARTS_MIN and "KEY-----" not in each}


def test_a_life_leaves_no_credential_anywhere(
    cloud: Direct, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    caplog.set_level("DEBUG")
    cloud.site.refresh_types()
    given = {"recipe": "pytorch", "jupyter_token": "f00d", "command": ("true",), "user_data": "#!/bin/sh\n"}
    made = cloud.site.create(cloud.machine(given=given))
    assert made is not None
    machine = cloud.machine(remote_id=made.remote_id, given=given)
    for _ in range(8):
        cloud.wait(10)
        cloud.site.ready(machine)
    (there,) = cloud.fake.alive
    cloud.fake.locked_out = True
    with pytest.raises(TeraflockError) as refused:
        cloud.site.delete(Handle(machine.id, "", made.remote_id))
    texts = [there.boot, str(there.label), caplog.text, repr(refused.value), repr(vars(cloud.site))]
    texts += [str(words) for words in (cloud.link.ran, cloud.link.sent)]
    texts += [path.read_text("latin-1") for path in tmp_path.rglob("*") if path.is_file()]
    secrets = secrets_of(cloud)
    assert secrets
    for text in texts:
        assert [each for each in secrets if each in text] == [], text[:200]


@pytest.mark.parametrize("before", [0, 290, 497])
def test_a_provider_that_repeats_what_it_was_sent_does_not_get_it_into_an_error(
    cloud: Direct, before: int, caplog: pytest.LogCaptureFixture
) -> None:
    """Also where the text is cut in the middle of a secret, and after a token was fetched."""
    caplog.set_level("DEBUG")
    cloud.site.refresh_types()
    cloud.site.check()
    secrets = secrets_of(cloud)
    sent = {
        each.removeprefix("Bearer ") for each in cloud.fake.headers.values() if each.startswith("Bearer ")
    }
    words = "x" * before + " ".join(sorted(secrets | sent))

    def route(*_: Any) -> Any:
        return 418, {"error": {"code": "odd", **said(words)}, "code": "odd", **said(words)}

    cloud.fake.route = route  # type: ignore[method-assign, assignment]
    with pytest.raises(TeraflockError) as refused:
        cloud.site.check()
    shown = repr(refused.value) + refused.value.sentence + caplog.text
    for each in secrets | sent:
        assert each[:PARTS_MIN] not in shown, shown


def said(words: str) -> dict[str, str]:
    return {"message": words, "msg": words, "detail": words, "Message": words, "error_msg": words}
