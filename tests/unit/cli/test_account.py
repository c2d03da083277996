"""`tera account`: how credentials are read, and what a report contains."""

from pathlib import Path

import pytest

from teraflock.base.errors import BadInput
from teraflock.cli.account import _report, read_secret
from teraflock.wire.account import AccountCheckAnswer
from teraflock.wire.site import SiteAnswer


def test_a_key_file_is_read_without_white_space(tmp_path: Path) -> None:
    path = tmp_path / "key"
    path.write_text("  sk-1\n")
    assert read_secret(str(path)) == "sk-1"


@pytest.mark.parametrize("content", [b"", b" \n", b"\xff\xfe", b"x" * 20_000])
def test_what_is_no_key_is_refused_without_repeating_it(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "key"
    path.write_bytes(content)
    with pytest.raises(BadInput, match="No credentials were given") as refused:
        read_secret(str(path))
    assert "xxx" not in refused.value.sentence


def test_a_missing_key_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="cannot be read: No such file"):
        read_secret(str(tmp_path / "none"))


def test_a_report_has_no_names_and_no_addresses() -> None:
    site = SiteAnswer(
        name="secret-name", kind="lambda", defined_in="database", state="ready", problem="", since=None,
        simulated=False, rents=True, capabilities=(), hosts=0, instances=2, open=False, organisations=("org_1",),
        options={"key": "account:secret-name", "base_url": "https://internal.example"},
    )  # fmt: skip
    words = "Lambda refused: user 123456 of secret-name may not do this"
    for check in (
        AccountCheckAnswer(name="secret-name", ok=True, found="2 types", problem="", hint=""),
        AccountCheckAnswer(
            name="secret-name", ok=False, found="", problem=words, hint="", code="engine_refused"
        ),
    ):
        report = _report(check, site)
        assert (report["provider"], report["check"]) == ("lambda", "ok" if check.ok else "engine_refused")
        assert not any(word in str(report) for word in ("secret-name", "internal", "org_1", "123456"))
