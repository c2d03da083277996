"""Images other than the base image, booted on a real engine."""

import json
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.engine.conftest import GIB, IMAGES, MachineMaker, launched
from tests.engine.sandbox import INSIDE_ADDRESS, Sandbox

from teraflock.drivers.lxd import build, names
from teraflock.drivers.lxd.driver import Lxd
from teraflock.drivers.lxd.rest import LxdClient
from teraflock.image import recipe
from teraflock.instance.driver import Machine, Port
from teraflock.instance.engine_errors import EngineRefused

TOKEN = "a-token-of-the-test-0123456789"
FETCH = """
import sys, time, urllib.error, urllib.request
for _ in range(300):
    try:
        with urllib.request.urlopen(sys.argv[1], timeout=5) as answer:
            print(answer.status, answer.read().decode())
            break
    except urllib.error.HTTPError as error:
        print(error.code)
        break
    except OSError:
        time.sleep(0.2)
"""


@pytest.fixture(scope="module")
def jupyter_image() -> Path:
    try:
        return build.build(recipe.read("jupyter"), IMAGES, created_at=1)
    except build.BuildFailed as reason:
        pytest.skip(f"the jupyter image cannot be built here: {reason}")


@pytest.mark.long("builds a second image, with pip, and starts two containers of it")
def test_jupyter_accepts_only_its_token(
    jupyter_image: Path, driver: Lxd, sandbox: Sandbox, a_machine: MachineMaker
) -> None:
    driver.build_image("img_jupyter", "jupyter")
    port = Port(28_888, 8888)
    machine = a_machine(image="img_jupyter", jupyter_token=TOKEN, ports=(port,), ram_bytes=GIB)
    launched(driver, machine)
    address = f"http://{INSIDE_ADDRESS}:{port.host_port}/api/status"
    with_token = sandbox.outside("python3", "-c", FETCH, f"{address}?token={TOKEN}").stdout
    assert with_token.startswith("200 "), driver.run(
        machine.handle, ("journalctl", "-u", "teraflock-jupyter"), stdin=b"", seconds_max=10
    )
    assert "started" in json.loads(with_token[4:])
    assert sandbox.outside("python3", "-c", FETCH, address).stdout == "403\n"
    assert sandbox.outside("python3", "-c", FETCH, f"{address}?token={TOKEN}x").stdout == "403\n"
    plain = a_machine(image="img_jupyter", ram_bytes=GIB)
    launched(driver, plain)
    asked = driver.run(
        plain.handle, ("systemctl", "is-active", "teraflock-jupyter"), stdin=b"", seconds_max=10
    )
    assert asked.stdout == b"inactive\n", "Jupyter needs a token"
    driver.delete_image("img_jupyter")


def test_concurrent_builds_create_one_image(driver: Lxd, sandbox: Sandbox, client: LxdClient) -> None:
    def build_it(number: int) -> None:
        driver.build_image(f"img_same{number % 2}", "base")

    driver.delete_image("img_base")
    # Threads inherit the network namespace of the thread that starts them.
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(build_it, range(4)))
    try:
        assert set(driver.images()) == {"img_same0", "img_same1"}
        assert len(client.get("images")) == 1
        assert [each["name"][:6] for each in client.get("instances", recursion=1)] == ["image-"]
    finally:
        driver.build_image("img_base", "base")
        for number in range(2):
            driver.delete_image(f"img_same{number}")
    assert set(driver.images()) == {"img_base"}


LARGE = {
    "pytorch": "import torch; print(int((torch.ones(64, 64) @ torch.ones(64, 64)).sum()))",
    "tensorflow": (
        "import tensorflow as tf; print(int(tf.reduce_sum(tf.ones((64, 64)) @ tf.ones((64, 64))).numpy()))"
    ),
}


@pytest.fixture(params=LARGE)
def large_image(request: pytest.FixtureRequest) -> str:
    """Build a large image. Each takes several gigabytes and minutes, so only on request."""
    name: str = request.param
    if name not in os.environ.get("TERA_LARGE_IMAGES", "").split(","):
        pytest.skip("set TERA_LARGE_IMAGES to build large images (pytorch,tensorflow)")
    build.build(recipe.read(name), IMAGES, created_at=1)
    return name


def test_large_image_can_compute(large_image: str, driver: Lxd, a_machine: MachineMaker) -> None:
    driver.build_image("img_large", large_image)
    machine = a_machine(image="img_large", ram_bytes=4 * GIB, disk_bytes=12 * GIB)
    launched(driver, machine)
    told = driver.run(
        machine.handle, ("/opt/jupyter/bin/python", "-c", LARGE[large_image]), stdin=b"", seconds_max=300
    )
    assert (told.exit_code, told.stdout) == (0, b"262144\n"), told
    driver.delete(machine.handle)
    driver.delete_image("img_large")


@pytest.mark.long("packs and unpacks a whole disk")
def test_a_file_without_content_does_not_fill_the_pool(driver: Lxd, red: Machine, client: LxdClient) -> None:
    """The engine would write 9 TB of zeros into the image, which no disk limit stops."""
    ran = driver.run(red.handle, ["truncate", "-s", "9T", "/root/big"], stdin=b"", seconds_max=20)
    assert ran.exit_code == 0
    with pytest.raises(EngineRefused, match="without their holes"):
        driver.publish(red.handle, "img_sparse")
    with (
        pytest.raises(EngineRefused, match="without their holes"),
        driver.pack_disk(red.handle, "cpy_sparse"),
    ):
        pass
    assert driver.images().keys() == {"img_base"}
    assert client.names("instances", names.guest(red.id), "snapshots") == []


@pytest.mark.long("packs a whole disk")
def test_what_a_crash_left_of_an_image_is_used_or_removed(
    driver: Lxd, red: Machine, client: LxdClient
) -> None:
    driver.publish(red.handle, "img_left")
    (made,) = [each for each in client.get("images", recursion=1) if each["aliases"][0]["name"] == "img_left"]
    key = made["fingerprint"][:24]
    client.delete("images", "aliases", "img_left")  # killed before it was named
    driver.publish(red.handle, "img_left")
    assert len(client.get("images")) == 2, "it is not made again"
    copied = {"name": f"rough-{key}", "source": {"type": "copy", "source": next(of(client, key))}}
    client.post("instances", body=copied)  # killed while a mould was made
    client.delete("images", "aliases", "img_left")
    driver.delete_image("img_left")
    assert driver.images().keys() == {"img_base"}
    assert len(client.get("images")) == 1
    assert list(of(client, key)) == []


@pytest.mark.long("packs a whole disk")
def test_image_whose_removal_was_cut_is_still_removed(
    driver: Lxd, red: Machine, client: LxdClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver.publish(red.handle, "img_cut")
    delete, struck = LxdClient.delete, list[str]()

    def dies(self: LxdClient, *parts: str, **more: object) -> object:
        if not struck and parts[0] in ("images", "instances"):
            delete(self, *parts, **more)  # type: ignore[arg-type]
            struck.append(parts[0])
            raise KeyboardInterrupt
        return delete(self, *parts, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(LxdClient, "delete", dies)
    with pytest.raises(KeyboardInterrupt):
        driver.delete_image("img_cut")
    driver.delete_image("img_cut")
    assert struck
    assert len(client.get("images")) == 1
    assert {name.split("-")[1] for name in client.names("instances") if name.startswith("image-")} == {
        client.get("images", recursion=1)[0]["fingerprint"][:24]
    }


def of(client: LxdClient, key: str) -> Iterator[str]:
    """The moulds of an image, complete or not."""
    return (name for name in client.names("instances") if key in name)
