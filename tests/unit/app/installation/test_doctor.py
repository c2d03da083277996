"""`tera doctor` with unreadable settings. It never suggests deleting anything."""

from pathlib import Path

import pytest

from teraflock.app.installation import up
from teraflock.app.installation.doctor import examine
from teraflock.app.installation.engine import Engine
from teraflock.app.installation.health import Finding, HealthVerdict
from teraflock.app.installation.places import Places
from teraflock.app.settings import load_settings
from teraflock.base.errors import BadInput

NOWHERE = {"TERA_SERVER": "http://127.0.0.1:1", "TERA_KEY": "tera_x"}


@pytest.fixture
def places(tmp_path: Path) -> Places:
    places = Places(tmp_path)
    places.cloud.mkdir()
    (places.cloud / "cloud.db").touch()
    return places


def examined(places: Places) -> list[Finding]:
    return examine(places, lambda _: None, NOWHERE)


@pytest.mark.parametrize(
    "text", ['engine = "lxd"\nlisten = \n', "", "\n \n", "egnine = 1\n", "rate_burst = 0\n"]
)
def test_broken_settings_come_first_and_no_purge_is_suggested(places: Places, text: str) -> None:
    places.settings.write_text(text)
    findings = examined(places)
    assert (findings[0].check, findings[0].verdict) == ("settings", HealthVerdict.WRONG)
    assert str(places.settings) in findings[0].seen + findings[0].repair or "egnine" in findings[0].seen
    assert findings[0].repair
    by_check = {each.check: each for each in findings}
    assert by_check["engine"].verdict == by_check["database"].verdict == HealthVerdict.SKIPPED
    assert not any("purge" in each.repair or "SIMULATED" in each.seen for each in findings)


def test_the_broken_line_is_named(places: Places) -> None:
    places.settings.write_text('engine = "lxd"\nlisten = \n')
    assert "line 2" in examined(places)[0].seen


def test_an_empty_settings_file_is_refused_with_a_hint(places: Places) -> None:
    places.settings.write_text("")
    with pytest.raises(BadInput, match="is empty") as refused:
        load_settings(places.server, {})
    assert f"rm {places.settings}" in refused.value.hint
    (places.cloud / "cloud.db").unlink()
    assert load_settings(places.server, {}).engine == "lxd", "an empty file is fine without an installation"


@pytest.mark.parametrize("noted", ["`make purge up` as root", "", "then `make purge up`: it failed"])
def test_a_simulated_installation_never_suggests_a_purge(places: Places, noted: str) -> None:
    """Older versions saved such advice."""
    places.settings.write_text('engine = "simulated"\n')
    import msgspec

    places.why_simulated.write_bytes(
        msgspec.json.encode(Engine(kind="simulated", description="not root", repair=noted))
    )
    engine = next(each for each in examined(places) if each.check == "engine")
    assert "SIMULATED" in engine.seen
    assert "purge" not in engine.repair
    assert "TERA_HOME" in engine.repair


def test_a_simulated_installation_that_lost_its_settings_stays_simulated(places: Places) -> None:
    import msgspec

    places.why_simulated.write_bytes(msgspec.json.encode(Engine(kind="simulated", description="not root")))
    assert up._engine(places, True, {}).kind == "simulated"
