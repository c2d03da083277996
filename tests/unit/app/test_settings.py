"""Settings: their sources, their precedence, and the errors for invalid ones."""

from pathlib import Path

import pytest

from teraflock.app.settings import Place, Settings, address_of, load_settings
from teraflock.base.errors import BadInput, TeraflockError


def loaded(home: Path, text: str = "", **environ: str) -> Settings:
    (home / "cloud").mkdir(exist_ok=True)
    if text:
        (home / "cloud" / "settings.toml").write_text(text)
    return load_settings(Place(home), environ)


def test_the_defaults_listen_on_loopback(tmp_path: Path) -> None:
    settings = load_settings(Place(tmp_path / "nowhere"), {})
    assert settings == Settings()
    assert address_of(settings.listen) == ("127.0.0.1", 8372)
    assert Place(tmp_path).database(settings) == str(tmp_path / "cloud" / "cloud.db")


def test_the_environment_takes_precedence_over_the_file(tmp_path: Path) -> None:
    text = 'engine = "simulated"\nrate_per_second = 5\nmetrics_open = true\n'
    settings = loaded(
        tmp_path, text, TERA_RATE_PER_SECOND="7", TERA_METRICS_OPEN="false", TERA_HOME="x", OTHER="y"
    )
    assert (settings.engine, settings.rate_per_second, settings.metrics_open) == ("simulated", 7, False)


@pytest.mark.parametrize(
    ("text", "environ", "words"),
    [
        ("rate = 3", {}, ["setting", "`rate`", "rate_per_second"]),
        ("rate_per_second = 'x'", {}, ["rate_per_second", "settings.toml", "int"]),
        ("rate_per_second = -1", {}, ["rate_per_second", ">= 0"]),
        ("engine = 'docker'", {}, ["engine", "docker"]),
        ("default_organisation_quota = 'hosts=3'", {}, ["default_organisation_quota", "`hosts`"]),
        ("default_project_quota = 'instances=many'", {}, ["default_project_quota", "`many`"]),
        ("trusted_proxies = 'proxy.example.org'", {}, ["trusted_proxies", "proxy.example.org"]),
        ("listen = [", {}, ["settings.toml", "TOML"]),
        ("", {"TERA_THREADS": "many"}, ["threads", "TERA_THREADS"]),
        ("", {"TERA_LISTEN": "8372"}, ["listen", "port"]),
        ("", {"TERA_LISTEN": "127.0.0.1:70000"}, ["listen", "port"]),
        ("", {"TERA_LISTEN": "0.0.0.0:8372"}, ["TLS", "only on this machine"]),
        ("", {"TERA_TLS_CERT": "/nowhere.pem"}, ["tls_cert", "tls_key"]),
        ("", {"TERA_TLS_CERT": "/nowhere.pem", "TERA_TLS_KEY": "/nowhere.key"}, ["tls_cert", "/nowhere.pem"]),
    ],
)
def test_an_invalid_setting_is_one_clear_error(
    tmp_path: Path, text: str, environ: dict[str, str], words: list[str]
) -> None:
    with pytest.raises(BadInput) as refused:
        loaded(tmp_path, text, **environ)
    message = refused.value.sentence + " " + refused.value.hint
    assert [word for word in words if word not in message] == []
    assert refused.value.hint
    assert "\n" not in refused.value.sentence


def test_listening_on_a_network_needs_tls_or_insecure(tmp_path: Path) -> None:
    assert loaded(tmp_path, TERA_LISTEN="0.0.0.0:1", TERA_INSECURE="1").insecure
    for own in ("127.0.0.5:1", "[::1]:1", "localhost:1"):
        assert loaded(tmp_path, TERA_LISTEN=own).listen == own


def test_settings_are_frozen() -> None:
    with pytest.raises(AttributeError):
        Settings().engine = "simulated"  # type: ignore[misc]


def test_every_error_is_a_teraflock_error(tmp_path: Path) -> None:
    (tmp_path / "cloud").mkdir()
    (tmp_path / "cloud" / "settings.toml").mkdir()
    with pytest.raises(TeraflockError):
        load_settings(Place(tmp_path), {})
