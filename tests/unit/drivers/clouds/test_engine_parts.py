"""Pacing, first-boot files, probes, keys and HTTP: the parts that all clouds share."""

import base64
import json
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, HTTPServer
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.contract.driver.grounds import network

from teraflock.app.vault import FileVault
from teraflock.base.errors import BadInput, Refused
from teraflock.drivers.clouds import guest, keys, probe
from teraflock.drivers.clouds.boto import BotoTransport
from teraflock.drivers.clouds.calls import CloudCall
from teraflock.drivers.clouds.cards import card
from teraflock.drivers.clouds.errors import one_line
from teraflock.drivers.clouds.http import HttpTransport
from teraflock.drivers.clouds.link import _options
from teraflock.drivers.clouds.marks import read_label
from teraflock.drivers.clouds.model import Pace
from teraflock.drivers.clouds.pacing import HOLD_SECONDS_MAX, Pacer
from teraflock.instance.account.rules import check_base_url
from teraflock.instance.driver import Endpoint, Handle, Machine
from teraflock.instance.engine_errors import EngineBusy, EngineDown, EngineRefused
from teraflock.instance.model import InstanceId


class Time:
    def __init__(self) -> None:
        self.now = 100.0

    def pause(self, seconds: float) -> None:
        self.now += seconds


@given(st.lists(st.sampled_from(["read", "launch", "change"]), min_size=1, max_size=40))
def test_calls_keep_to_the_provider_s_rates(acts: list[str]) -> None:
    time = Time()
    pacer = Pacer(Pace(call_seconds=1.0, launch_seconds=12.0), seconds=lambda: time.now, pause=time.pause)
    calls: list[float] = []
    launches: list[float] = []
    for act in acts:
        try:
            pacer.wait(act)
        except EngineBusy:
            time.pause(20)
            continue
        calls.append(time.now)
        launches += [time.now] if act == "launch" else []
    assert all(later - earlier >= 1.0 - 1e-9 for earlier, later in pairwise(calls))
    assert all(later - earlier >= 12.0 - 1e-9 for earlier, later in pairwise(launches))


def test_a_refusal_pauses_everything_for_a_bounded_time() -> None:
    time = Time()
    pacer = Pacer(Pace(call_seconds=0, launch_seconds=0), seconds=lambda: time.now, pause=time.pause)
    pacer.refused(1e9)
    with pytest.raises(EngineBusy):
        pacer.wait("read")
    time.pause(HOLD_SECONDS_MAX)
    pacer.wait("read")


def machine(**changes: Any) -> Machine:
    return Machine(
        **{
            "handle": Handle(InstanceId("ins_1"), ""),
            "hostname": "one",
            "image": "img_1",
            "vcpus": 1,
            "ram_bytes": 1,
            "disk_bytes": 1,
            "network": network(1),
            "address": "",
            **changes,
        }
    )


def derive(purpose: str) -> bytes:
    return b"\1" * 32


HOSTILE = ("echo", "$(touch /tmp/x)", "'; rm -rf / #", "a\nb", "é")


def test_first_boot_files_quote_what_tenants_write(tmp_path: Path) -> None:
    """The command runs with exactly its words, whatever they contain."""
    host = keys.host_key(derive, "t")
    given = machine(command=("printf", "%s|", *HOSTILE), environment={"NAME": "$(id)'\""})
    config = json.loads(guest.cloud_config(given, host, "ssh-ed25519 AAAA").partition("\n")[2])
    (program,) = [each for each in config["write_files"] if each["path"].endswith("/command")]
    text = base64.b64decode(program["content"]).decode()
    script = tmp_path / "command"
    script.write_text(text)
    done = subprocess.run(["sh", str(script)], capture_output=True, text=True, check=True)
    assert done.stdout == "".join(f"{word}|" for word in HOSTILE)
    assert config["ssh_keys"]["ed25519_public"] == host.public
    assert config["ssh_pwauth"] is False


@pytest.mark.parametrize("code", [0, 3])
def test_the_run_script_keeps_log_and_exit_code_and_runs_once(tmp_path: Path, code: int) -> None:
    run = tmp_path / "run"
    run.write_text(guest.RUN_SCRIPT.replace(guest.FOLDER, str(tmp_path)))
    (tmp_path / "environment").write_text("export WORD='a b'\n")
    program = tmp_path / "command"
    program.write_text(f'#!/bin/sh\necho out "$WORD"; pwd; echo again >> {tmp_path}/runs; exit {code}\n')
    program.chmod(0o700)
    for _ in range(2):
        assert subprocess.run(["sh", str(run), "command"], check=False).returncode == code
    state = guest.state_command("command")[2].replace(guest.FOLDER, str(tmp_path))
    done = subprocess.run(["sh", "-c", state], capture_output=True, check=True)
    assert guest.read_state(done.stdout) == (code, b"out a b\n/root\n")
    assert (tmp_path / "runs").read_text() == "again\n"


def test_a_program_that_still_runs_has_no_exit_code() -> None:
    assert guest.read_state(b"-\nso far") == (None, b"so far")
    assert guest.read_state(b"") == (None, b"")


@given(st.binary(max_size=200))
def test_whatever_a_guest_prints_is_read(output: bytes) -> None:
    probe.problem(probe.read(output), 1, 1)
    guest.read_state(output)


@pytest.mark.parametrize(
    ("probed", "words"),
    [
        (None, "did not report"),
        (probe.Probed(cuda=-1, memory=()), "not installed"),
        (probe.Probed(cuda=802, memory=()), "error 802"),
        (probe.Probed(cuda=0, memory=(16 << 30,)), "1 of 2"),
        (probe.Probed(cuda=0, memory=(16 << 30, 8 << 30)), "8 GiB instead of 16"),
        (probe.Probed(cuda=0, memory=(15 << 30, 16 << 30)), ""),
    ],
)
def test_a_probe_compares_with_what_was_promised(probed: probe.Probed | None, words: str) -> None:
    found = probe.problem(probed, 2, 16 << 30)
    assert words in found
    assert bool(found) == bool(words)


def test_keys_are_the_same_after_a_crash_and_differ_between_launches(tmp_path: Path) -> None:
    first, second = FileVault(tmp_path), FileVault(tmp_path)
    one = keys.host_key(first.derive, "ins_1.1.0")
    assert one.public == keys.host_key(second.derive, "ins_1.1.0").public
    assert one.public != keys.host_key(first.derive, "ins_1.1.1").public
    assert one.public != keys.login_key(first.derive, "ins_1.1.0").public
    assert one.private not in repr(one)
    assert (tmp_path / "secrets.key").stat().st_mode & 0o777 == 0o600
    path = tmp_path / "key"
    path.write_text(one.private)
    path.chmod(0o600)
    shown = subprocess.run(["ssh-keygen", "-y", "-f", str(path)], capture_output=True, text=True, check=True)
    assert shown.stdout.split()[:2] == one.public.split()[:2], "OpenSSH reads the key"


def test_sealed_texts_are_bound_to_a_name(tmp_path: Path) -> None:
    vault = FileVault(tmp_path)
    sealed = vault.seal("secret", bound_to="one")
    assert vault.open(sealed, bound_to="one") == "secret"
    assert sealed != vault.seal("secret", bound_to="one")
    for text, name in ((sealed, "two"), (sealed[:-8] + "AAAAAAA=", "one"), ("nonsense", "one")):
        with pytest.raises(Refused, match="cannot be decrypted"):
            vault.open(text, bound_to=name)


def test_ssh_trusts_only_the_expected_key(tmp_path: Path) -> None:
    pair = keys.login_key(derive, "mark")
    words = _options(tmp_path, Endpoint("192.0.2.1", 2222), "ssh-ed25519 AAAA", pair)
    assert "StrictHostKeyChecking=yes" in words
    assert (tmp_path / "known_hosts").read_text().startswith("[192.0.2.1]:2222 ssh-ed25519 AAAA\n")
    assert (tmp_path / "key").stat().st_mode & 0o777 == 0o600


def test_labels_of_others_are_not_ours() -> None:
    assert read_label("mark", "tf.mark.ins_1.2.0") == ("ins_1", "ins_1.2.0")
    for text in ("", "tf.mark.", "tf.markother.ins_1.2.0", "tf.other.ins_1.2.0", "mark"):
        assert read_label("mark", text) is None


def test_words_of_a_provider_are_one_bounded_line() -> None:
    assert one_line("a\nb\x1b[31m") == "a b [31m"
    assert len(one_line("x" * 10_000)) == 300


@pytest.mark.parametrize(
    ("text", "id"), [("A10 (24 GB PCIe)", "a10"), ("", ""), ("Imaginary 9000", "imaginary-9000")]
)
def test_names_of_gpus(text: str, id: str) -> None:
    assert card(text)[0].lower() == id


@pytest.mark.parametrize(
    "url",
    ["http://example.com", "https://", "ftp://x", "https://a b", "https://u@h", "https://h:0", "http://[::1"],
)
def test_base_urls_that_would_leak_credentials_are_refused(url: str) -> None:
    with pytest.raises(BadInput):
        check_base_url(url)


class Redirecting(BaseHTTPRequestHandler):
    seen: ClassVar[list[str]] = []
    ANSWERS: ClassVar = {"/to": (302, b""), "/text": (500, b"<html>"), "/ok": (200, b'{"a": 1}')}

    def do_GET(self) -> None:
        self.seen.append(self.path)
        status, body = self.ANSWERS[self.path]
        self.send_response(status)
        self.send_header("Location", "/ok")
        self.send_header("Retry-After", "7")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *words: Any) -> None:
        return


@pytest.fixture
def url() -> Iterator[str]:
    server = HTTPServer(("127.0.0.1", 0), Redirecting)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    thread.join()
    server.server_close()


def test_redirects_are_refused_and_not_followed(url: str) -> None:
    transport = HttpTransport(url)
    Redirecting.seen.clear()
    with pytest.raises(EngineRefused, match="redirects"):
        transport.send(CloudCall(method="GET", path="/to"), {}, None)
    assert Redirecting.seen == ["/to"]
    assert transport.send(CloudCall(method="GET", path="/ok"), {}, None).body == {"a": 1}
    broken = transport.send(CloudCall(method="GET", path="/text"), {}, None)
    assert (broken.status, broken.body, broken.text, broken.retry_after) == (500, None, "<html>", 7.0)


@pytest.mark.parametrize(
    "answer", [b"HTTP/1.1 200 OK\r\nX: ", b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n"]
)
def test_an_answer_that_drips_without_end_does_not_hold_a_thread(answer: bytes) -> None:
    """A byte now and then, in the body or in a header: each renews the timeout of the socket."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        over = threading.Event()

        def drip() -> None:
            with listener.accept()[0] as taken, suppress(OSError):
                taken.sendall(answer)
                while not over.wait(0.02):
                    taken.sendall(b"a")

        thread = threading.Thread(target=drip)
        thread.start()
        transport = HttpTransport(f"http://127.0.0.1:{listener.getsockname()[1]}", seconds_max=0.2)
        try:
            with pytest.raises(EngineDown, match="No answer"):
                transport.send(CloudCall(method="GET", path="/"), {}, None)
        finally:
            over.set()
            thread.join()


def test_a_reply_of_many_small_values_is_refused(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    monkeypatch.setattr("teraflock.drivers.clouds.http.REPLY_VALUES_MAX", 1_000)
    monkeypatch.setattr(Redirecting, "ANSWERS", {"/ok": (200, b"[" + b"[]," * 1_000 + b"[]]")})
    with pytest.raises(EngineDown, match="too large"):
        HttpTransport(url).send(CloudCall(method="GET", path="/ok"), {}, None)


def test_the_address_of_aws_comes_from_the_account_only(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("botocore")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9/")
    client = BotoTransport("id:key")._client("ec2", "us-east-1")
    assert client.meta.endpoint_url == "https://ec2.us-east-1.amazonaws.com"


def test_a_server_that_does_not_answer_is_down() -> None:
    with pytest.raises(EngineDown, match="No answer from `127.0.0.1`"):
        HttpTransport("http://127.0.0.1:9").send(CloudCall(method="GET", path="/"), {}, None)
