"""Runs on rented machines with a bucket in their region: checkpoints are pushed there, datasets are read from there."""

import threading
from collections.abc import Iterable, Iterator, Mapping
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from tests.faults.data_installation import DataInstallation
from tests.faults.run_installation import BEGAN
from tests.faults.test_runs import result, steps

from teraflock.drivers.simulated.runs import chain
from teraflock.drivers.simulated.world import MemoryWorld
from teraflock.instance.site.model import SiteRecord
from teraflock.run.bucket import data_key
from teraflock.run.states import RunPhase


class HttpBucket:
    """A bucket on this machine. Its addresses work for one act each, as signed ones do."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self.acts: list[str] = []
        self.refuses = False
        bucket = self

        class Handler(BaseHTTPRequestHandler):
            def do_PUT(self) -> None:
                bucket.answer(self, "PUT")

            def do_GET(self) -> None:
                bucket.answer(self, "GET")

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def answer(self, handler: BaseHTTPRequestHandler, act: str) -> None:
        allowed, _, key = handler.path[1:].partition("/")
        size = int(handler.headers.get("Content-Length") or 0)
        content = handler.rfile.read(size)
        if self.refuses or allowed not in (act, f"{act}{size}"):
            handler.send_error(403)
            return
        self.acts.append(f"{act} {key}")
        handler.send_response(200)
        handler.end_headers()
        if act == "PUT":
            self.objects[key] = content
        else:
            handler.wfile.write(self.objects[key])

    def _url(self, act: str, key: str) -> str:
        return f"http://127.0.0.1:{self.server.server_port}/{act}/{key}"

    def put_url(self, key: str, size_bytes: int) -> str:
        return self._url(f"PUT{size_bytes}", key)

    def get_url(self, key: str) -> str:
        return self._url("GET", key)

    def put_stream(self, key: str, pieces: Iterable[bytes]) -> None:
        self.acts.append(f"server PUT {key}")
        self.objects[key] = b"".join(pieces)

    def get_stream(self, key: str) -> Iterator[bytes]:
        yield self.objects[key]

    def sizes(self, prefix: str) -> Mapping[str, int]:
        return {key: len(each) for key, each in self.objects.items() if key.startswith(prefix)}

    def remove(self, prefix: str) -> None:
        for key in list(self.sizes(prefix)):
            del self.objects[key]

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def bucket() -> Iterator[HttpBucket]:
    made = HttpBucket()
    yield made
    made.close()


@pytest.fixture
def installation(tmp_path: Path, bucket: HttpBucket) -> Iterator[DataInstallation]:
    made = DataInstallation.in_memory(BEGAN, tmp_path, sky=MemoryWorld())
    made.buckets["east"] = bucket
    yield made
    made.database.close()


def test_checkpoints_are_pushed_to_the_bucket_and_restored_from_it(
    installation: DataInstallation, bucket: HttpBucket
) -> None:
    run = installation.ask("train", "90", "1", "10", site="sky", type="cpu")
    run = installation.until(run, lambda seen: steps(seen) > 45)
    kept = installation.runs.checkpoints(installation.tenant.project.id, run.id)
    assert {each.bucket for each in kept} == {"east"}
    assert set(bucket.objects) == {f"{run.id}/{each.id}.tar" for each in kept}, "older ones are removed"
    assert not list((installation.folder / "runs" / run.id).glob("ckp*")), "nothing came to the server"
    name = kept[-1].name
    fetched = b"".join(installation.runs.checkpoint(installation.tenant.project.id, run.id, name))
    assert fetched == bucket.objects[f"{run.id}/{kept[-1].id}.tar"]
    installation.sky_trouble.taken_back(run.instance_id, installation.clock.now() + timedelta(seconds=60))
    run = installation.finish(run)
    assert (run.phase, result(installation, run), len(run.instances)) == (RunPhase.DONE, chain(90).hex(), 2)
    assert any(each.startswith("GET run_") for each in bucket.acts), "the new machine read it from the bucket"
    installation.pass_time(31 * 86_400)
    installation.loop.sweep()
    assert not bucket.objects


def test_bucket_that_refuses_changes_only_the_way_of_checkpoints(
    installation: DataInstallation, bucket: HttpBucket
) -> None:
    bucket.refuses = True
    run = installation.ask("train", "60", "1", "10", site="sky", type="cpu")
    run = installation.until(run, lambda seen: steps(seen) > 45)
    kept = installation.runs.checkpoints(installation.tenant.project.id, run.id)
    assert kept
    assert {each.bucket for each in kept} == {""}
    assert installation.finish(run).phase == RunPhase.DONE


@pytest.mark.parametrize("near", [False, True])
def test_interval_counts_what_the_provider_charges_for_a_copy(
    installation: DataInstallation, bucket: HttpBucket, near: bool
) -> None:
    """Without a bucket in the region, checkpoints of the simulated cloud cost what those of a real one do."""
    if not near:
        installation.buckets.clear()
    installation.engines.records = {"sky": SiteRecord(name="sky", kind="aws")}
    run = installation.ask("train", "60", "1", "10", site="sky", type="cpu")
    run = installation.until(run, lambda seen: seen.phase == RunPhase.RUNNING)
    instance = installation.service.view(installation.tenant.project.id, run.instance_id).instance
    acts = installation.loop._acts
    assert acts._guest(instance).near == ("east" if near else "")
    assert acts._starts._egress_seconds(instance, 10**10) == pytest.approx(0.9 / 0.05 * 3600)


def test_run_that_moves_to_own_hosts_gets_its_checkpoints_through_the_server(
    installation: DataInstallation, bucket: HttpBucket
) -> None:
    run = installation.ask("train", "60", "1", "10", site="sky", type="cpu")
    run = installation.until(run, lambda seen: steps(seen) > 45)
    kept = installation.runs.checkpoints(installation.tenant.project.id, run.id)
    own = installation.ask("train", "60", "1", "10", name="own")
    own = installation.until(own, lambda seen: seen.phase == RunPhase.RUNNING)
    guest = installation.loop._acts._guest(
        installation.service.view(installation.tenant.project.id, own.instance_id).instance
    )
    installation.loop._acts._pulls.restore(own, guest, kept[-1], "/root/checkpoints")
    assert kept[-1].name in [each.name for each in guest.entries("/root/checkpoints")]
    assert not [each for each in bucket.acts if each.startswith("GET")]


def test_dataset_is_copied_to_a_region_once_and_read_from_there(
    installation: DataInstallation, bucket: HttpBucket
) -> None:
    made = installation.push("corpus", {"a": b"alpha", "b": b"beta"})
    for name in ("first", "second"):
        run = installation.ask("cat", "/data/corpus/a", name=name, site="sky", type="cpu", data=("corpus",))
        run = installation.finish(run)
        assert (run.phase, installation.text(run)) == (RunPhase.DONE, "alpha")
    key = data_key(made.id)
    assert bucket.acts.count(f"server PUT {key}") == 1
    assert bucket.acts.count(f"GET {key}") == 2
    installation.datasets.delete(installation.tenant.actor, installation.tenant.project, "corpus")
    installation.turn()
    installation.loop.sweep()
    assert not bucket.objects


@pytest.fixture
def stored(tmp_path: Path, bucket: HttpBucket) -> Iterator[DataInstallation]:
    """Outputs and checkpoints are in a bucket, also those from own hosts."""
    made = DataInstallation.in_memory(BEGAN, tmp_path, store=bucket)
    yield made
    made.database.close()


@pytest.mark.parametrize("damaged", [False, True])
def test_a_run_on_own_hosts_is_kept_in_the_bucket_of_the_server(
    stored: DataInstallation, bucket: HttpBucket, damaged: bool
) -> None:
    run = stored.ask("train", "90", "1", "10")
    run = stored.until(run, lambda seen: steps(seen) > 45)
    kept = stored.runs.checkpoints(stored.tenant.project.id, run.id)
    assert set(bucket.objects) == {f"{run.id}/{each.id}.tar" for each in kept}, "older ones are removed"
    assert [each.name for each in (stored.folder / "runs" / run.id).iterdir()] == ["log"]
    if damaged:
        newest = max(kept, key=lambda each: each.written_ns)
        key = f"{run.id}/{newest.id}.tar"
        bucket.objects[key] = bytes(len(bucket.objects[key]))
    stored.trouble.deleted_by_hand(run.instance_id)
    run = stored.finish(run)
    assert (run.phase, run.attempt) == (RunPhase.DONE, 2)
    assert result(stored, run) == chain(90).hex()
    assert f"{run.id}/outputs.tar" in bucket.objects
    stored.files.remove_run(run.id)
    assert not bucket.objects
